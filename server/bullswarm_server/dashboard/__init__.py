"""The dashboard: bullswarm on a whole terminal. ``view_*`` turn what was read into rows, purely; the widgets only draw them."""
