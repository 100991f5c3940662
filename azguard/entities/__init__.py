"""Entities of tables: their types, the requests, and what azguard makes of them."""
