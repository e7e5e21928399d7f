// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/fault"
	"github.com/platform-ai/platform/pkg/workspace/repository"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/kit"
)

// orderFrom returns an order for a repository of a host, with new folders.
func orderFrom(t *testing.T, h *githost.Host, name string) workspace.Order {
	t.Helper()
	return workspace.Order{URL: h.Location(name), Token: h.Token, Allow: []string{h.Address()}, Dir: t.TempDir(), Temp: t.TempDir(), MaxBytes: 1 << 20, MaxEntries: 100}
}

// filesOf returns what a folder has, by path: the content of files, and for links the target after an arrow.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			found[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		default:
			raw, err := os.ReadFile(path)
			found[name] = string(raw)
			if info, err := d.Info(); err == nil && info.Mode()&0o100 != 0 {
				found[name] += " (executable)"
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTree(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	old := h.Commit(t, "r", "main", map[string]string{"gone.txt": "old"})
	h.Git(t, "r", "", "tag", "-a", "-m", "first", "v1", old)
	head := h.Commit(t, "r", "main", map[string]string{
		"README.md": "hello\n", "bin/run.sh": githost.Executable + "exit 0\n", "docs/a/b.md": "deep", "docs/link": githost.Link + "a/b.md", "docs/up": githost.Link + "../README.md",
		"out": githost.Link + "/etc/passwd", "climb/out": githost.Link + "../../etc/passwd", "dive": githost.Link + "docs/../../x",
	})
	branch := h.Commit(t, "r", "feature/x", map[string]string{"only": "here"})
	all := map[string]string{
		"README.md": "hello\n", "bin/": "", "bin/run.sh": "exit 0\n (executable)", "docs/": "", "docs/a/": "", "docs/a/b.md": "deep", "docs/link": "-> a/b.md", "docs/up": "-> ../README.md",
		"out": "/etc/passwd", "climb/": "", "climb/out": "../../etc/passwd", "dive": "docs/../../x",
	}
	for name, tc := range map[string]struct {
		order       func(*workspace.Order)
		commit, ref string
		files       map[string]string
	}{
		"default branch":   {func(*workspace.Order) {}, head, "refs/heads/main", all},
		"branch":           {func(o *workspace.Order) { o.Branch = "feature/x" }, branch, "refs/heads/feature/x", map[string]string{"only": "here"}},
		"full ref":         {func(o *workspace.Order) { o.Ref = "refs/heads/feature/x" }, branch, "refs/heads/feature/x", map[string]string{"only": "here"}},
		"annotated tag":    {func(o *workspace.Order) { o.Ref = "v1" }, old, "refs/tags/v1", map[string]string{"gone.txt": "old"}},
		"commit":           {func(o *workspace.Order) { o.Ref = head }, head, "", all},
		"commit of no ref": {func(o *workspace.Order) { o.Ref = old }, old, "", map[string]string{"gone.txt": "old"}},
		"frozen commit":    {func(o *workspace.Order) { o.Branch, o.Commit = "main", old }, old, "", map[string]string{"gone.txt": "old"}},
		"folder":           {func(o *workspace.Order) { o.SubPath = "docs/a" }, head, "refs/heads/main", map[string]string{"b.md": "deep"}},
		"folder whose links lead out": {func(o *workspace.Order) { o.SubPath = "docs" }, head, "refs/heads/main", map[string]string{
			"a/": "", "a/b.md": "deep", "link": "-> a/b.md", "up": "../README.md",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := orderFrom(t, h, "r")
			tc.order(&o)
			r, err := Do(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := filesOf(t, o.Dir); r.Commit != tc.commit || r.Ref != tc.ref || !maps.Equal(got, tc.files) {
				t.Errorf("commit %s of %q with %q, want %s of %q with %q", r.Commit, r.Ref, got, tc.commit, tc.ref, tc.files)
			}
			if tree := h.Git(t, "r", "", "rev-parse", r.Commit+"^{tree}"); r.Tree != tree {
				t.Errorf("tree %s, want %s", r.Tree, tree)
			}
			if left := filesOf(t, o.Temp); len(left) > 0 {
				t.Errorf("left behind: %q", slices.Collect(maps.Keys(left)))
			}
		})
	}
}

// TestHostileTree: a tree that no file system should have is refused whole, or written as what it is and nothing else.
func TestHostileTree(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	file := func(name, content string) githost.Entry {
		return githost.Entry{Mode: "100644", Name: name, Content: content}
	}
	for name, tc := range map[string]struct {
		entries func(repo string) []githost.Entry
		refused string
		files   map[string]string
	}{
		"git's folder": {func(r string) []githost.Entry {
			return []githost.Entry{{Mode: "40000", Name: ".git", ID: h.Tree(t, r, file("config", "[core]\n"))}}
		}, `".git" is, or is taken`, nil},
		"in upper case": {func(string) []githost.Entry { return []githost.Entry{file(".GIT", "x")} }, `".GIT" is, or is taken`, nil},
		"below": {func(r string) []githost.Entry {
			return []githost.Entry{{Mode: "40000", Name: "sub", ID: h.Tree(t, r, file(".Git", "x"))}}
		}, `"sub/.Git" is, or is taken`, nil},
		"of HFS+":         {func(string) []githost.Entry { return []githost.Entry{file(".g\u200cit", "x")} }, "is, or is taken", nil},
		"of NTFS, short":  {func(string) []githost.Entry { return []githost.Entry{file("GIT~1", "x")} }, "is, or is taken", nil},
		"of NTFS, stream": {func(string) []githost.Entry { return []githost.Entry{file(".git::$INDEX_ALLOCATION", "x")} }, "is, or is taken", nil},
		"of NTFS, dots":   {func(string) []githost.Entry { return []githost.Entry{file(".git. .", "x")} }, "is, or is taken", nil},
		"with backslash":  {func(string) []githost.Entry { return []githost.Entry{file(`a\.git\hooks`, "x")} }, "is, or is taken", nil},
		"parent":          {func(string) []githost.Entry { return []githost.Entry{file("..", "x")} }, "not the name of a file", nil},
		"itself": {func(r string) []githost.Entry {
			return []githost.Entry{{Mode: "40000", Name: ".", ID: h.Tree(t, r, file("a", "x"))}}
		}, "not the name of a file", nil},
		"slash":     {func(string) []githost.Entry { return []githost.Entry{file("a/../../b", "x")} }, "no name of a file has", nil},
		"long name": {func(string) []githost.Entry { return []githost.Entry{file(strings.Repeat("n", 300), "x")} }, "longer than 255 bytes", nil},
		"twice":     {func(string) []githost.Entry { return []githost.Entry{file("a", "1"), file("a", "2")} }, `"a" is there twice`, nil},
		"link and folder": {func(r string) []githost.Entry {
			return []githost.Entry{{Mode: "120000", Name: "a", Content: "b"}, {Mode: "40000", Name: "a", ID: h.Tree(t, r, file("x", "x"))}}
		}, `"a" is there twice`, nil},
		"link to git's folder": {func(string) []githost.Entry {
			return []githost.Entry{{Mode: "120000", Name: "a", Content: ".git/config"}}
		}, "", map[string]string{"a": ".git/config"}},
		"long link": {func(string) []githost.Entry {
			return []githost.Entry{{Mode: "120000", Name: "a", Content: strings.Repeat("t/", 4000)}}
		}, "the target of the link", nil},
		"pipe, which git takes for a submodule": {func(string) []githost.Entry { return []githost.Entry{{Mode: "10644", Name: "pipe", Content: "x"}} }, "", map[string]string{"pipe/": ""}},
		"large file":                            {func(string) []githost.Entry { return []githost.Entry{file("big", strings.Repeat("0", 2<<20))} }, "more than 1048576 bytes in files", nil},
		"many files": {func(string) []githost.Entry {
			var all []githost.Entry
			id := h.Git(t, "many files", "x", "hash-object", "-w", "--stdin")
			for i := range 101 {
				all = append(all, githost.Entry{Mode: "100644", Name: string(rune('a'+i/26)) + string(rune('a'+i%26)), ID: id})
			}
			return all
		}, "more than 100 files", nil},
		"submodule": {func(string) []githost.Entry {
			return []githost.Entry{file(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% /tmp/pwned\n\tupdate = !touch /tmp/pwned\n"), {Mode: "160000", Name: "x", ID: strings.Repeat("a", 40)}}
		}, "", map[string]string{".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% /tmp/pwned\n\tupdate = !touch /tmp/pwned\n", "x/": ""}},
		"cases": {func(string) []githost.Entry { return []githost.Entry{file("Makefile", "1"), file("makefile", "2")} }, "", map[string]string{"Makefile": "1", "makefile": "2"}},
		"options and devices": {func(string) []githost.Entry {
			return []githost.Entry{file("--upload-pack=touch x", "1"), file("-rf", "2"), file("AUX", "3"), file("a\nb", "4"), file("c:", "5")}
		}, "", map[string]string{"--upload-pack=touch x": "1", "-rf": "2", "AUX": "3", "a\nb": "4", "c:": "5"}},
		"attributes, filters and hooks of tools": {func(string) []githost.Entry {
			return []githost.Entry{file(".gitattributes", "* filter=evil text eol=crlf working-tree-encoding=UTF-16\n"), file(".lfsconfig", "[lfs]\n\turl = http://evil\n"), file(".mcp.json", "{}"), file("a", "one\n")}
		}, "", map[string]string{".gitattributes": "* filter=evil text eol=crlf working-tree-encoding=UTF-16\n", ".lfsconfig": "[lfs]\n\turl = http://evil\n", ".mcp.json": "{}", "a": "one\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.Create(t, name)
			commit := h.CommitTree(t, name, "main", h.Tree(t, name, tc.entries(name)...))
			o := orderFrom(t, h, "r")
			o.URL = h.URL + "/" + url.PathEscape(name) + ".git"
			outside := filesOf(t, filepath.Dir(o.Dir))
			r, err := Do(t.Context(), o)
			switch {
			case tc.refused == "" && err != nil:
				t.Fatal(err)
			case tc.refused == "":
				if got := filesOf(t, o.Dir); r.Commit != commit || !maps.Equal(got, tc.files) {
					t.Errorf("wrote %q, want %q", got, tc.files)
				}
			case err == nil || !strings.Contains(err.Error(), tc.refused):
				t.Errorf("error %v, want one with %q", err, tc.refused)
			}
			for path := range filesOf(t, filepath.Dir(o.Dir)) {
				if _, was := outside[path]; !was && !strings.HasPrefix(path, filepath.Base(o.Dir)+"/") {
					t.Errorf("wrote %q outside of its folder", path)
				}
			}
		})
	}
}

// TestServers: what a server does wrong ends with a reason, and its text and the credential are in no error.
func TestServers(t *testing.T) {
	t.Parallel()
	const token, said = "swordfish-token-4711", "text of the server"
	for name, tc := range map[string]struct {
		answer    func(w http.ResponseWriter, r *http.Request) bool
		order     func(*workspace.Order)
		reason    string
		temporary bool
	}{
		"no such repository":     {nil, func(o *workspace.Order) { o.URL += "x" }, v1alpha1.ReasonRepositoryNotRead, false},
		"no such branch":         {nil, func(o *workspace.Order) { o.Branch = "none" }, v1alpha1.ReasonRepositoryNotRead, false},
		"no such commit":         {nil, func(o *workspace.Order) { o.Ref = strings.Repeat("b", 40) }, v1alpha1.ReasonRepositoryNotRead, false},
		"a tag's own name":       {nil, func(o *workspace.Order) { o.Ref = "tag" }, v1alpha1.ReasonRepositoryNotRead, false},
		"no such folder":         {nil, func(o *workspace.Order) { o.SubPath = "none" }, v1alpha1.ReasonRepositoryNotRead, false},
		"folder that is a file":  {nil, func(o *workspace.Order) { o.SubPath = "a" }, v1alpha1.ReasonRepositoryNotRead, false},
		"wrong token":            {nil, func(o *workspace.Order) { o.Token = "other-" + token }, v1alpha1.ReasonRepositoryNotRead, false},
		"private address":        {nil, func(o *workspace.Order) { o.Allow = nil }, v1alpha1.ReasonRepositoryNotRead, false},
		"token for another host": {nil, func(o *workspace.Order) { o.Hosts = egress.Hosts{Rule: "github.com", Set: true} }, v1alpha1.ReasonRepositoryNotRead, false},
		"too much":               {nil, func(o *workspace.Order) { o.MaxBytes = 10 }, v1alpha1.ReasonWorkspaceRefused, false},
		"redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1"+r.URL.RequestURI(), http.StatusMovedPermanently)
			return true
		}, nil, v1alpha1.ReasonRepositoryNotRead, false},
		"a path that names redirects": {func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }, func(o *workspace.Order) { o.URL += "/redirect" }, v1alpha1.ReasonRepositoryUnreachable, true},
		"empty repository":            {nil, func(o *workspace.Order) { o.URL = strings.TrimSuffix(o.URL, "r.git") + "empty.git" }, v1alpha1.ReasonRepositoryNotRead, false},
		"failure": {func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, said, http.StatusInternalServerError)
			return true
		}, nil, v1alpha1.ReasonRepositoryUnreachable, true},
		"a page": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("<html>" + said))
			return true
		}, nil, v1alpha1.ReasonRepositoryUnreachable, true},
		"words of the server": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				_, _ = fmt.Fprintf(w, "0008NAK\n%04x\x03%s0000", 5+len(said), said)
			}
			return r.Method == http.MethodPost
		}, nil, v1alpha1.ReasonRepositoryUnreachable, true},
		"refusal in the list": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04xERR %s", 8+len(said), said)
			return true
		}, nil, v1alpha1.ReasonRepositoryUnreachable, true},
		"cut off": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				panic(http.ErrAbortHandler)
			}
			return false
		}, nil, v1alpha1.ReasonRepositoryUnreachable, true},
		"no pack": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				_, _ = w.Write([]byte("0008NAK\n0019\x01PACK not really one\n0000"))
			}
			return r.Method == http.MethodPost
		}, nil, v1alpha1.ReasonRepositoryUnreachable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := githost.New(t, token)
			h.Create(t, "r")
			h.Create(t, "empty")
			h.Commit(t, "r", "main", map[string]string{"a": "content of some length"})
			h.Answer = tc.answer
			o := orderFrom(t, h, "r")
			if tc.order != nil {
				tc.order(&o)
			}
			if o.Ref == "tag" {
				h.Git(t, "r", "", "tag", "-a", "-m", "a tag", "t", "main")
				o.Ref = h.Git(t, "r", "", "rev-parse", "t")
			}
			_, err := Do(t.Context(), o)
			if err == nil {
				t.Fatal("it was prepared")
			}
			f := fault.Of(err)
			if f.Reason != tc.reason || f.Temporary != tc.temporary {
				t.Errorf("%+v, want reason %s, temporary %v", f, tc.reason, tc.temporary)
			}
			for _, secret := range []string{token, base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token)), said} {
				if strings.Contains(f.Message, secret) {
					t.Errorf("the message shows %q: %s", secret, f.Message)
				}
			}
		})
	}
}

// TestGrownRepository: a repository as it becomes over time, with deltas in its packs, merges, names in other encodings and files of
// other editors, is written as git itself writes it.
func TestGrownRepository(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	lines := make([]string, 2000)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of a long file\r", i)
	}
	large := strings.Repeat("0123456789abcdef", 200_000)
	files := map[string]string{"caf\xe9.txt": "latin", "日本/語.md": "utf-8", "a b/c\td": "spaces", "CRLF.bat": "echo\r\n", "empty": "", "nul": "a\x00b"}
	commits := 8
	if kit.Offered(kit.Minutes) {
		commits = 30
	}
	for i := range commits {
		lines[i*60] = fmt.Sprintf("changed %d", i)
		files["long.txt"], files["large.bin"] = strings.Join(lines, "\n"), large[i:]+large[:i]
		h.Commit(t, "r", "main", files)
	}
	side := h.CommitTree(t, "r", "side", h.Git(t, "r", "", "rev-parse", "main^{tree}"))
	merge := h.Git(t, "r", "", "commit-tree", "-p", "main", "-p", side, "-m", "merge", "main^{tree}")
	h.Git(t, "r", "", "update-ref", "refs/heads/main", merge)
	h.Git(t, "r", "", "gc", "-q", "--aggressive")
	for name, ref := range map[string]string{"newest": "", "an old one": h.Git(t, "r", "", "rev-parse", fmt.Sprint("main~", commits/2))} {
		o := orderFrom(t, h, "r")
		o.Ref, o.MaxBytes = ref, 200<<20
		r, err := Do(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out := t.TempDir()
		h.Git(t, "r", "", "--work-tree="+out, "checkout", "-f", r.Commit, "--", ".")
		if got, want := filesOf(t, o.Dir), filesOf(t, out); !maps.Equal(got, want) || len(got) != 10 {
			t.Errorf("%s: %d files, git wrote %d, or their content differs", name, len(got), len(want))
		}
	}
}

// TestStall: a server that begins to answer and says no more is given up.
func TestStall(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	_, err := do(t.Context(), orderFrom(t, h, "r"), time.Millisecond)
	if !errors.Is(err, repository.ErrUnavailable) || !strings.Contains(err.Error(), "sent nothing") {
		t.Errorf("%v", err)
	}
}

// TestStopped: a preparation that is stopped says why.
func TestStopped(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := Do(ctx, orderFrom(t, h, "r")); !errors.Is(err, stopped) {
		t.Errorf("stopped: %v", err)
	}
}
