"""ClassAds: parse, check, bound, evaluate."""
