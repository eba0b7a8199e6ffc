"""What tests of stores need: real servers, and a proxy that does what networks do."""
