"""What people keep of the portal for themselves: saved filters, and how pages look to them."""
