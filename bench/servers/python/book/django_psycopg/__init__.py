"""`recipes` with Django's ORM and psycopg.

The models are the scenario's tables: the image has those of images/servers/django-psycopg.
"""
