// Command carry copies a folder or a file of the image it is started in to a place outside of it. An image of nothing
// but files has no program that could do that, so this one copies itself beside them first.
//
//	carry --self FILE          copy this program to FILE
//	carry FOLDER TO KEY        copy all of FOLDER into the folder TO; KEY has to be a file in it
//	carry FILE TO              copy FILE to the file TO; what is beside TO already counts against the bound
//
// What it says at its end is for whoever wrote the image.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	mostBytes = 1 << 30
	mostFiles = 20_000
	mostNames = 5
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "--self":
		err = carrySelf(args[1])
	case len(args) == 2:
		err = carryFile(args[0], args[1])
	case len(args) == 3:
		err = carry(args[0], args[1], args[2])
	default:
		err = errors.New("usage: carry --self FILE, carry FOLDER TO KEY, or carry FILE TO")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func carrySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = copyFile(self, to, 0o755, mostBytes)
	return err
}

// carry copies a folder and all below it. Links to files become the files that they lead to.
func carry(folder, to, key string) error {
	named := folder
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return fmt.Errorf("the image has no folder %s", named)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the image has no folder %s", named)
	}
	if info, err := os.Stat(filepath.Join(folder, key)); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("there is no file %s in folder %s of the image%s", key, folder, whatIsThere(folder))
	}
	files, left := 0, int64(mostBytes)
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		switch target := filepath.Join(to, below); {
		case err != nil:
			return fmt.Errorf("%s of the image cannot be read: %w", path, err)
		case below == ".":
			return nil
		case info.IsDir():
			if isLink(path) {
				return fmt.Errorf("%s of the image is a link to a folder: put the folder itself there", path)
			}
			return os.Mkdir(target, 0o755)
		case info.Mode().IsRegular():
			if files++; files > mostFiles {
				return fmt.Errorf("folder %s of the image has more than %d files: name one with less in it", folder, mostFiles)
			}
			size, err := copyFile(path, target, 0o644, left)
			if left -= size; errors.Is(err, errTooLarge) {
				return fmt.Errorf("folder %s of the image has more than %d MiB: name one with less in it", folder, mostBytes>>20)
			}
			return err
		default:
			return fmt.Errorf("%s of the image is no file and no folder: leave it out", path)
		}
	})
}

// carryFile copies one file, or the one that a link of its name leads to.
func carryFile(file, to string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s of the image cannot be read: %w", file, err)
	case err != nil && isLink(file):
		return fmt.Errorf("%s of the image is a link that leads to no file", file)
	case err != nil:
		folder := folderAbove(file)
		return fmt.Errorf("the image has no file %s: there is folder %s%s", file, folder, whatIsThere(folder, notOfTheImage(to)...))
	case info.IsDir():
		return fmt.Errorf("%s of the image is a folder%s: name a file", file, whatIsThere(file))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s of the image is no regular file but %s: name one", file, kindOf(info.Mode()))
	}
	left, err := room(to)
	if err != nil {
		return err
	}
	if _, err = copyFile(file, to, 0o644, left); errors.Is(err, errTooLarge) {
		return fmt.Errorf("%s of the image is larger than the %d bytes that are left of %d MiB for all files together: make it smaller",
			file, left, mostBytes>>20)
	}
	return err
}

// room returns how many bytes a file may have, beside what is in its folder already.
func room(file string) (int64, error) {
	others, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return 0, err
	}
	left := int64(mostBytes)
	for _, one := range others {
		info, err := one.Info()
		if err != nil {
			return 0, err
		}
		// One that was copied before, and is again, takes the place of itself.
		if one.Name() != filepath.Base(file) {
			left -= info.Size()
		}
	}
	return max(left, 0), nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a socket"
	}
}

// folderAbove returns the nearest folder of a path that is there.
func folderAbove(path string) string {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		if info, err := os.Stat(folder); err == nil && info.IsDir() || folder == filepath.Dir(folder) {
			return folder
		}
	}
}

// notOfTheImage returns the folders that a container has beside its image.
func notOfTheImage(to string) []string {
	folders := []string{"/dev", "/proc", "/sys", filepath.Dir(to)}
	if self, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(self))
	}
	return folders
}

var errTooLarge = errors.New("too large")

func copyFile(from, to string, mode fs.FileMode, most int64) (size int64, err error) {
	source, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer func() { _ = source.Close() }() // it was only read
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return 0, err
	}
	if info, err := source.Stat(); err == nil && info.Size() > most {
		return 0, errors.Join(errTooLarge, target.Close())
	}
	// What the kernel makes up says nothing of its size beforehand.
	size, err = io.Copy(target, io.LimitReader(source, most+1))
	if size > most {
		err = errTooLarge
	}
	return size, errors.Join(err, target.Close())
}

// whatIsThere names some files of a folder, but none of folders that are to be left out.
func whatIsThere(folder string, leftOut ...string) string {
	var names []string
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case len(names) > mostNames:
			return fs.SkipAll
		case err != nil || slices.Contains(leftOut, path):
			return fs.SkipDir
		case !entry.IsDir():
			below, _ := filepath.Rel(folder, path)
			names = append(names, below)
		}
		return nil
	})
	if len(names) == 0 {
		return ", which is empty"
	}
	slices.Sort(names)
	more := ""
	if len(names) > mostNames {
		names, more = names[:mostNames], " and more"
	}
	return fmt.Sprintf(", which has %s%s", strings.Join(names, ", "), more)
}
