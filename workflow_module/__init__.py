"""workflow_module: durable workflows on top of gamedb."""
