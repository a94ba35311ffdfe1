"""Do rank and identity die together?"""
