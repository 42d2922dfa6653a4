"""Who may come in: tokens, cookies, roles, proxies.  A server on loopback has no door."""
