"""The declared tables: one small file a table, found by its name like any component (`paths.py` defines `paths() ->
Table`).
"""
