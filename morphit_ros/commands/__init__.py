"""The commands of `morphit`: one a module, each with ``add_parser`` and a function that runs it."""
