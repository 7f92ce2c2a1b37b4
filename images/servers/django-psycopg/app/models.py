"""The tables of the `recipes` scenario, which the run has made."""

from django.db import models


class User(models.Model):
    """Somebody who owns, writes and reads."""

    id = models.IntegerField(primary_key=True)
    name = models.TextField()
    email = models.TextField(unique=True)

    class Meta:
        managed = False
        db_table = "users"


class Session(models.Model):
    """A browser that a user has logged in with."""

    session_key = models.TextField(primary_key=True)
    user = models.ForeignKey(User, models.CASCADE)
    expires = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "sessions"


class Team(models.Model):
    """Users who share recipes."""

    id = models.IntegerField(primary_key=True)
    name = models.TextField()

    class Meta:
        managed = False
        db_table = "teams"


class Membership(models.Model):
    """That a user is in a team, or was."""

    pk = models.CompositePrimaryKey("team_id", "user_id")
    team = models.ForeignKey(Team, models.CASCADE)
    user = models.ForeignKey(User, models.CASCADE)
    is_active = models.BooleanField()

    class Meta:
        managed = False
        db_table = "memberships"


class Recipe(models.Model):
    """A recipe of a user or of a team."""

    id = models.IntegerField(primary_key=True)
    name = models.TextField()
    author = models.TextField()
    source = models.TextField()
    time = models.TextField()
    servings = models.TextField()
    owner_user = models.ForeignKey(User, models.CASCADE, null=True)
    owner_team = models.ForeignKey(Team, models.CASCADE, null=True)
    created = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "recipes"


class Ingredient(models.Model):
    """What a recipe needs."""

    id = models.IntegerField(primary_key=True)
    recipe = models.ForeignKey(Recipe, models.CASCADE)
    quantity = models.TextField()
    name = models.TextField()
    description = models.TextField()
    position = models.TextField()
    optional = models.BooleanField()
    deleted = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "ingredients"


class Step(models.Model):
    """What to do next."""

    id = models.IntegerField(primary_key=True)
    recipe = models.ForeignKey(Recipe, models.CASCADE)
    text = models.TextField()
    position = models.TextField()
    deleted = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "steps"


class Section(models.Model):
    """A heading between ingredients."""

    id = models.IntegerField(primary_key=True)
    recipe = models.ForeignKey(Recipe, models.CASCADE)
    title = models.TextField()
    position = models.TextField()
    deleted = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "sections"


class Note(models.Model):
    """What somebody wrote about a recipe."""

    id = models.IntegerField(primary_key=True)
    recipe = models.ForeignKey(Recipe, models.CASCADE)
    text = models.TextField()
    created_by = models.ForeignKey(User, models.CASCADE)
    created = models.DateTimeField()
    deleted = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "notes"


class Reaction(models.Model):
    """An emoji under a note."""

    id = models.IntegerField(primary_key=True)
    note = models.ForeignKey(Note, models.CASCADE)
    emoji = models.TextField()
    created_by = models.ForeignKey(User, models.CASCADE)
    created = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "reactions"


class TimelineEvent(models.Model):
    """What somebody did with a recipe."""

    id = models.IntegerField(primary_key=True)
    recipe = models.ForeignKey(Recipe, models.CASCADE)
    action = models.TextField()
    created_by = models.ForeignKey(User, models.CASCADE)
    created = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "timeline_events"
