"""Tasks of several actions: clear a table, push something to a place; as behaviour trees."""
