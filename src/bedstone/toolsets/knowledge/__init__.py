"""Files people add: the seven knowledge tools."""
