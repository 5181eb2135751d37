"""What the user handed over, understood and checked: the call, its edges and groups, where portions start."""
