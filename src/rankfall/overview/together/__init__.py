"""The figure of joint losses: do rank and identity die together?"""
