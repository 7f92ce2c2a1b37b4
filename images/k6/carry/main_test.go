package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func put(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFolderComesWithAllBelowIt(t *testing.T) {
	folder, to := t.TempDir(), t.TempDir()
	put(t, folder, map[string]string{"main.js": "main", "lib/deep/a.js": "a", "rows.csv": strings.Repeat("1,2\n", 1<<20)})
	if err := os.Symlink("rows.csv", filepath.Join(folder, "link.csv")); err != nil {
		t.Fatal(err)
	}
	if err := carry(folder, to, "lib/deep/a.js"); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"main.js": 4, "lib/deep/a.js": 1, "rows.csv": 4 << 20, "link.csv": 4 << 20} {
		info, err := os.Lstat(filepath.Join(to, name))
		if err != nil || info.Size() != size || info.Mode() != 0o644 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestWhatIsWrongWithAFolderIsSaid(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, map[string]string{"a/b.js": "", "empty/of/x": ""})
	if err := os.Symlink("../a", filepath.Join(folder, "empty", "folder")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(folder, "a", "lost")); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct{ folder, key, says string }{
		"no folder":      {"/nowhere/at/all", "a.js", "has no folder /nowhere/at/all"},
		"a file":         {filepath.Join(folder, "a", "b.js"), "a.js", "has no folder"},
		"no key":         {folder, "main.js", "there is no file main.js in folder " + folder + " of the image, which has a/b.js, a/lost, empty/folder, empty/of/x"},
		"a folder's key": {folder, "a", "there is no file a in"},
		"a dead link":    {filepath.Join(folder, "a"), "b.js", "lost of the image cannot be read"},
		"a link away":    {filepath.Join(folder, "empty"), "of/x", "put the folder itself there"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := carry(one.folder, t.TempDir(), one.key); err == nil || !strings.Contains(err.Error(), one.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAFolderMayBeALink(t *testing.T) {
	folder, to := t.TempDir(), t.TempDir()
	put(t, folder, map[string]string{"real/main.js": "main"})
	if err := os.Symlink("real", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := carry(filepath.Join(folder, "link"), to, "main.js"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "main.js")); err != nil || string(text) != "main" {
		t.Error(text, err)
	}
}

func TestWhatHasNoEndIsRefusedAtTheBound(t *testing.T) {
	to := filepath.Join(t.TempDir(), "endless")
	size, err := copyFile("/dev/zero", to, 0o644, 1<<20)
	if !errors.Is(err, errTooLarge) || size != 1<<20+1 {
		t.Error(size, err)
	}
}

func TestMoreThanTheBoundIsRefusedBeforeItIsCopied(t *testing.T) {
	folder, to := t.TempDir(), t.TempDir()
	put(t, folder, map[string]string{"main.js": ""})
	large, err := os.Create(filepath.Join(folder, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Truncate(mostBytes + 1); err != nil {
		t.Fatal(err)
	}
	if err := carry(folder, to, "main.js"); err == nil || !strings.Contains(err.Error(), "more than 1024 MiB") {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "large")); err != nil || info.Size() != 0 {
		t.Error(info, err)
	}
}

func TestOneFileComesAlone(t *testing.T) {
	folder, to := t.TempDir(), filepath.Join(t.TempDir(), "02-seed.sql")
	put(t, folder, map[string]string{"data/rows.sql": strings.Repeat("SELECT 1;\n", 1<<18), "data/other.sql": "other"})
	if err := os.Symlink("data/rows.sql", filepath.Join(folder, "link.sql")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data/rows.sql", "link.sql", "data/rows.sql"} {
		if err := carryFile(filepath.Join(folder, name), to); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(to); err != nil || info.Size() != 10<<18 || info.Mode() != 0o644 {
			t.Error(name, info, err)
		}
	}
	if others, err := os.ReadDir(filepath.Dir(to)); err != nil || len(others) != 1 {
		t.Error(others, err)
	}
}

func TestWhatIsWrongWithAFileIsSaid(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, map[string]string{"sql/a.sql": "", "sql/b.sql": "", "nothing/x": ""})
	if err := os.Remove(filepath.Join(folder, "nothing", "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(folder, "sql", "lost")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	sql := filepath.Join(folder, "sql")
	for name, one := range map[string]struct{ file, says string }{
		"no file":         {filepath.Join(sql, "rows.sql"), "has no file " + sql + "/rows.sql: there is folder " + sql + ", which has a.sql, b.sql, lost"},
		"no folder":       {filepath.Join(folder, "data", "deep", "a.sql"), "there is folder " + folder + ", which has pipe, sql/a.sql, sql/b.sql, sql/lost"},
		"below a file":    {filepath.Join(sql, "a.sql", "b.sql"), "there is folder " + sql},
		"an empty folder": {filepath.Join(folder, "nothing", "a.sql"), "there is folder " + folder + "/nothing, which is empty"},
		"a folder":        {sql, sql + " of the image is a folder, which has a.sql, b.sql, lost: name a file"},
		"a dead link":     {filepath.Join(sql, "lost"), "lost of the image is a link that leads to no file"},
		"a pipe":          {filepath.Join(folder, "pipe"), "is no regular file but a pipe"},
		"a device":        {"/dev/zero", "is no regular file but a device"},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "01-schema.sql")
			if err := carryFile(one.file, to); err == nil || !strings.Contains(err.Error(), one.says) {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(to); err == nil {
				t.Error("it was made")
			}
		})
	}
}

func TestAllFilesTogetherHaveTheBound(t *testing.T) {
	folder, to := t.TempDir(), t.TempDir()
	put(t, folder, map[string]string{"rows.sql": "SELECT 1;"})
	first, err := os.Create(filepath.Join(to, "01-schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(folder, "rows.sql")
	for left, fits := range map[int64]bool{9: true, 8: false, -1: false} {
		if err := first.Truncate(mostBytes - left); err != nil {
			t.Fatal(err)
		}
		// What was copied there before counts for nothing.
		put(t, to, map[string]string{"02-seed.sql": "more than there is room for"})
		err := carryFile(rows, filepath.Join(to, "02-seed.sql"))
		if (err == nil) != fits {
			t.Error(left, err)
		}
		if !fits && !strings.Contains(err.Error(), "bytes that are left of 1024 MiB for all files together: make it smaller") {
			t.Error(err)
		}
	}
}

func TestOfAWholeImageOnlyItsOwnFoldersAreNamed(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, map[string]string{"dev/null": "", "sql/rows.sql": ""})
	if said := whatIsThere(folder, filepath.Join(folder, "dev")); said != ", which has sql/rows.sql" {
		t.Error(said)
	}
	beside := notOfTheImage("/laptime-files/02-seed.sql")
	if !slices.Contains(beside, "/proc") || !slices.Contains(beside, "/laptime-files") {
		t.Error(beside)
	}
}

func TestItCopiesItselfWithTheRightToRun(t *testing.T) {
	to := filepath.Join(t.TempDir(), "carry")
	if err := carrySelf(to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode() != 0o755 {
		t.Error(info, err)
	}
}
