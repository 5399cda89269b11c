__version__ = "20230314"
