"""What runs will cost, and whether this machine is ready for them: before anything long. Free of torch."""
