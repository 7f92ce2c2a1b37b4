-- What each statement cost, for reports; the library itself is preloaded by the image.
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
