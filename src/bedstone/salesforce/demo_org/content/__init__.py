"""What is in the demo org: a small maker of cargo bikes, its dealers, riders and workshops. All of it is invented."""
