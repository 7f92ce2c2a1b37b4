package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

func TestItCopiesItselfWithTheRightToRun(t *testing.T) {
	to := filepath.Join(t.TempDir(), "carry")
	if err := carrySelf(to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode() != 0o755 {
		t.Error(info, err)
	}
}
