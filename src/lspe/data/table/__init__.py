"""A person's own table of molecules: read strictly, with every row that cannot be used said in words."""
