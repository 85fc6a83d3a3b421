"""Each toolset as a server of its own, under the name its clients expect."""
