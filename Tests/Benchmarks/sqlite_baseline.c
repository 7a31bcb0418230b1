// Measures the minimum cost of a durable `queue add` with bare SQLite: a small row is written and committed with WAL,
// synchronous=FULL, without a pause and after 60 ms of idle time, and with 64 savepoints in each commit.
//
//   sqlite_baseline FOLDER [COMMITS]     the disk of the folder is measured
//
// Prints rows, one line of JSON each.
#include "measure.h"

#include <sqlite3.h>
#include <unistd.h>

enum { GROUP = 64, TEXT = 200, COLD_COMMITS = 60, QUIET_US = 60000 };

static sqlite3 *database;

static void run(const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, message);
        exit(70);
    }
}

static void insert(sqlite3_stmt *statement, int key, const char *text) {
    sqlite3_bind_int(statement, 1, key);
    sqlite3_bind_text(statement, 2, text, TEXT, SQLITE_STATIC);
    CHECK(sqlite3_step(statement) == SQLITE_DONE, sqlite3_errmsg(database));
    sqlite3_reset(statement);
}

// Returns the microseconds of one commit.
static double commit(sqlite3_stmt *statement, int key, const char *text) {
    double begin = now_us();
    run("BEGIN IMMEDIATE");
    insert(statement, key, text);
    run("COMMIT");
    return now_us() - begin;
}

static void text_of(const char *sql, const char *expected) {
    sqlite3_stmt *statement;
    CHECK(sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK, sql);
    CHECK(sqlite3_step(statement) == SQLITE_ROW, sql);
    CHECK(strcmp((const char *)sqlite3_column_text(statement, 0), expected) == 0, sql);
    sqlite3_finalize(statement);
}

int main(int argc, char **argv) {
    int commits = argc >= 3 ? atoi(argv[2]) : 5000;
    if (argc < 2 || commits < 1) {
        fprintf(stderr, "usage: sqlite_baseline FOLDER [COMMITS]\n");
        return 64;
    }
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s/sqlite-baseline.XXXXXX", argv[1]);
    CHECK(mkdtemp(folder), folder);
    snprintf(path, sizeof path, "%s/bench.sqlite", folder);
    CHECK(sqlite3_open(path, &database) == SQLITE_OK, path);
    run("PRAGMA journal_mode = WAL");
    run("PRAGMA synchronous = FULL");
    text_of("PRAGMA journal_mode", "wal");
    text_of("PRAGMA synchronous", "2");
    run("CREATE TABLE entry (id INTEGER PRIMARY KEY, body TEXT NOT NULL)");

    char text[TEXT];
    memset(text, 'x', sizeof text);
    sqlite3_stmt *statement;
    CHECK(sqlite3_prepare_v2(database, "INSERT INTO entry VALUES (?, ?)", -1, &statement, NULL) == SQLITE_OK, "prepare");

    int key = 0;
    double *samples = calloc((size_t)commits, sizeof *samples), start = now_us();
    for (int i = 0; i < commits; i++) samples[i] = commit(statement, ++key, text);
    row("sqlite.commits", commits / (now_us() - start) * 1e6, "commits/s");
    row("sqlite.commit.p50", percentile(samples, commits, 50), "us");
    row("sqlite.commit.p99", percentile(samples, commits, 99), "us");

    start = now_us();
    for (int done = 0; done < commits; done += GROUP) {
        run("BEGIN IMMEDIATE");
        for (int i = 0; i < GROUP; i++) {
            run("SAVEPOINT one");
            insert(statement, ++key, text);
            run("RELEASE one");
        }
        run("COMMIT");
    }
    row("sqlite.grouped64", (commits + GROUP - 1) / GROUP * GROUP / (now_us() - start) * 1e6, "commits/s");

    double cold[COLD_COMMITS];
    for (int i = 0; i < COLD_COMMITS; i++) {
        usleep(QUIET_US);
        cold[i] = commit(statement, ++key, text);
    }
    row("sqlite.commit.cold.p50", percentile(cold, COLD_COMMITS, 50), "us");

    free(samples);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    for (int i = 0; i < 3; i++) {
        static const char *const suffixes[] = {"", "-wal", "-shm"};
        char file[320];
        snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        unlink(file);
    }
    rmdir(folder);
    return 0;
}
