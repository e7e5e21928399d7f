// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// System returns, as patterns of paths, the parts of a machine that programs, interpreters and compilers need:
// programs and libraries, and the files of /etc that are not secret. The operator can add programs elsewhere, such as
// in /opt or in a home folder.
func System() []string {
	paths := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/run/current-system/sw",
		"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup/cgroup.controllers",
	}
	for _, name := range []string{
		"alternatives", "bash.bashrc", "bashrc", "ca-certificates", "crypto-policies", "debian_version", "fonts", "gai.conf",
		"gitconfig", "group", "host.conf", "hostname", "hosts", "inputrc", "java*", "ld.so.*", "locale.*", "localtime",
		"login.defs", "lsb-release", "magic*", "mime.types", "networks", "nsswitch.conf", "os-release", "passwd", "perl",
		"pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "profile", "profile.d",
		"protocols", "python*", "redhat-release", "resolv.conf", "R", "ruby*", "services", "shells", "ssl/cert.pem",
		"ssl/certs", "ssl/openssl.cnf", "static", "terminfo", "timezone", "xml",
	} {
		paths = append(paths, "/etc/"+name)
	}
	return paths
}

// kernelFiles returns the parts of /dev and /proc that every program may use. The shim adds the program's own entry in
// /proc, which is the only one of a process.
func kernelFiles() []grant {
	var out []grant
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		out = append(out, grant{path: "/dev/" + name, write: true, optional: true})
	}
	for _, name := range []string{"cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime", "version"} {
		out = append(out, grant{path: "/proc/" + name, optional: true})
	}
	return out
}

// grant is a path, free of links, that the program may use with everything below it.
type grant struct {
	path  string
	write bool
	// optional grants may be missing.
	optional bool
}

// Resolved returns the policy with its paths looked up, which takes hundreds of system calls, so that several uses of the
// policy need not do so again. Files that are made later are not part of it.
func (p Policy) Resolved() (Policy, error) {
	if p.Off {
		return p, nil
	}
	var err error
	p.resolved, err = p.grants()
	return p, err
}

// grants returns the paths of the policy, without those that are hidden.
func (p Policy) grants() ([]grant, error) {
	if p.resolved != nil {
		return p.resolved, nil
	}
	hidden := make([]string, 0, len(p.Hide))
	for _, h := range p.Hide {
		r, err := resolve(h)
		if err != nil {
			return nil, err
		}
		hidden = append(hidden, r)
	}
	var out []grant
	for _, w := range p.Write {
		path, err := filepath.EvalSymlinks(w)
		if err != nil {
			return nil, fmt.Errorf("a path of the sandbox: %w", err)
		}
		out = append(out, around(grant{path: path, write: true}, hidden)...)
	}
	list := lister()
	for _, pattern := range p.Read {
		for _, path := range matches(pattern, list) {
			if slices.ContainsFunc(hidden, func(h string) bool { return within(path, h) }) {
				continue
			}
			out = append(out, around(grant{path: path, optional: true}, hidden)...)
		}
	}
	for _, k := range kernelFiles() {
		if path, err := filepath.EvalSymlinks(k.path); err == nil {
			k.path = path
			out = append(out, k)
		}
	}
	return out, nil
}

// lister returns a function which lists the names in a folder, and reads each folder once.
func lister() func(dir string) []string {
	known := map[string][]string{}
	return func(dir string) []string {
		names, ok := known[dir]
		if !ok {
			if f, err := os.Open(dir); err == nil {
				names, _ = f.Readdirnames(-1) // what cannot be listed does not match
				_ = f.Close()
			}
			known[dir] = names
		}
		return names
	}
}

// matches returns the existing paths of a pattern, free of links. Only the last part of a pattern has wildcards.
func matches(pattern string, list func(dir string) []string) []string {
	found := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		dir, last := filepath.Split(pattern)
		found = nil
		for _, name := range list(dir) {
			if ok, _ := filepath.Match(last, name); ok { // patterns come from this package and are valid
				found = append(found, dir+name)
			}
		}
	}
	var out []string
	for _, path := range found {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			out = append(out, r)
		}
	}
	return out
}

// around leaves hidden paths out of a grant. A Landlock domain cannot exclude a part of what it grants, so a folder
// with something hidden below is replaced by its present entries. The folder itself can then not be listed, and
// entries that are added later cannot be reached.
func around(g grant, hidden []string) []grant {
	below := slices.DeleteFunc(slices.Clone(hidden), func(h string) bool { return !within(h, g.path) })
	switch {
	case len(below) == 0:
		return []grant{g}
	case slices.Contains(below, g.path):
		return nil
	}
	entries, err := os.ReadDir(g.path)
	if err != nil {
		return nil // not a folder, or one that this user cannot list
	}
	var out []grant
	for _, e := range entries {
		out = append(out, around(grant{path: filepath.Join(g.path, e.Name()), write: g.write, optional: true}, below)...)
	}
	return out
}

// within reports whether path is root or below it. Both are clean.
func within(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolve follows the links of the part of a path that exists.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("a path of the sandbox: %w", err)
	}
	rest := ""
	for {
		r, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(r, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return "", fmt.Errorf("a path of the sandbox: %w", err)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// Reaches returns a function which reports whether programs may read and execute a file or folder.
func (p Policy) Reaches() func(path string) bool {
	if p.Off {
		return func(string) bool { return true }
	}
	grants, err := p.grants()
	return func(path string) bool {
		r, rerr := filepath.EvalSymlinks(path)
		return err == nil && rerr == nil && slices.ContainsFunc(grants, func(g grant) bool { return within(r, g.path) })
	}
}

// SearchPath returns the list of folders of PATH without those that programs cannot reach, because a shell could not
// start what it finds there.
func (p Policy) SearchPath(list string) string {
	reaches := p.Reaches()
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) || !reaches(dir) })
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// CheckRead refuses paths for Read that would open what is hidden. Both must be absolute.
func CheckRead(paths, hidden []string) error {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s is not an absolute path", path)
		}
		r, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		if r == string(filepath.Separator) || within(r, "/proc") || within("/proc", r) {
			return fmt.Errorf("%s is more than a program may read: name the folders that it needs", path)
		}
		for _, h := range hidden {
			h, err := resolve(h)
			if err != nil {
				return err
			}
			if within(r, h) {
				return fmt.Errorf("%s is inside of %s, which holds keys and is never shown to programs", path, h)
			}
		}
	}
	return nil
}
