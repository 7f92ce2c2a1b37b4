"""Which view answers which path."""

from django.urls import path

from book.django_psycopg import views

urlpatterns = [
    path("api/v1/recipes", views.random_recipe),
    path("healthz", views.healthz),
]
