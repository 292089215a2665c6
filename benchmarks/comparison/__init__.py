"""The public comparison: massart beside other libraries, over a grid of tables whose truth is known.

`tables` draws the grid, `methods` has massart and its peers with their settings, `running` measures each method on each
table in a process of its own, and `page` shows what came out, cells where a peer wins first.
"""
