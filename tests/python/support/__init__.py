"""Support for tests of stores: real servers, and a proxy that fails like a network."""
