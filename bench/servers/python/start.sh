# Starts SERVER as the documentation of its framework says, with the workers, threads and port of
# the contract (docs/servers.md).
set -eu

# uvicorn logs each request unless told not to; the contract wants silence.
uvicorn="uvicorn --host 0.0.0.0 --port $PORT --workers $WORKERS --no-access-log"
gunicorn="gunicorn --bind 0.0.0.0:$PORT --workers $WORKERS --no-control-socket"

case "$SERVER" in
fastapi-sync) exec $uvicorn book.fastapi_sync:app ;;
fastapi-async) exec $uvicorn book.fastapi_async:app ;;
fastapi-tasks) exec $uvicorn book.fastapi_tasks:app ;;
fastapi-sleep) exec $gunicorn --worker-class uvicorn_worker.UvicornWorker book.fastapi_sleep:app ;;
starlette) exec $gunicorn --worker-class uvicorn_worker.UvicornWorker book.starlette_posts:app ;;
starlette-asyncpg) exec $gunicorn --worker-class uvicorn_worker.UvicornWorker book.starlette_recipes:app ;;
flask) exec $gunicorn --threads "$THREADS" book.flask_posts:app ;;
django-psycopg) exec $gunicorn book.django_psycopg.wsgi ;;
*) echo "SERVER cannot be '$SERVER'" >&2; exit 2 ;;
esac
