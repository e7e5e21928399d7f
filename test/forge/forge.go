// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forge gives tests a real code host: Gitea, unmodified, built from its Go module by build.sh ("make forge") and started on a
// free port of loopback. It serves git over HTTP, the API, commit statuses and webhooks.
//
// A test that uses it needs kit.Forge. Each test that calls Start has a host of its own, which is ready within seconds; tests that
// share one are subtests, with repositories of their own.
package forge

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/test/kit"
)

// keeper is the administrator, and password the password of all users.
const keeper, password = "keeper", "a-password-of-tests"

// Forge is a running Gitea.
type Forge struct {
	*kit.Process
	// URL is its address, without a slash at the end. Direct is where it listens, which is the same unless it is behind something.
	URL, Direct string

	admin *gitea.Client
}

// Start starts a Gitea with nothing in it. It ends with the test.
func Start(t testing.TB) *Forge {
	t.Helper()
	return StartBehind(t, "")
}

// StartBehind is Start for a Gitea whose address is another one, such as that of a proxy that the test has in front of it. What the test
// itself does with the Gitea is not sent there.
func StartBehind(t testing.TB, url string) *Forge {
	t.Helper()
	kit.Needs(t, kit.Forge)
	built := builds(t)
	dir := t.TempDir()
	port := kit.FreePort(t)
	f := &Forge{Direct: "http://127.0.0.1:" + port}
	f.URL = cmp.Or(url, f.Direct)
	config := filepath.Join(dir, "app.ini")
	write(t, config, fmt.Sprintf(settings, dir, port, f.URL, filepath.Join(built, "static")))
	// What Gitea starts, git and its own hooks, gets this environment, so nothing of the machine's configuration takes part.
	env := []string{"HOME=" + dir, "USER=git", "GIT_CONFIG_NOSYSTEM=1", "GITEA_WORK_DIR=" + dir, "GITEA_CUSTOM=" + filepath.Join(dir, "custom")}
	program := unprivileged(filepath.Join(built, "gitea"), "--config", config)
	f.Process = kit.Start(t, env, program[0], append(program[1:], "web")...)
	kit.Await(t, "Gitea answers", func() bool {
		answer, err := http.Get(f.Direct + "/api/healthz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	made := kit.Run(t, append(os.Environ(), env...), program[0], append(program[1:], "admin", "user", "create", "--admin", "--username", keeper,
		"--password", password, "--email", keeper+"@example.com", "--must-change-password=false")...)
	made.Must(t, "gitea admin user create")
	f.admin = f.as(t, gitea.SetBasicAuth(keeper, password))
	return f
}

// builds returns the folder in which build.sh keeps the program.
func builds(t testing.TB) string {
	t.Helper()
	for dir := kit.Must[string](t)(os.Getwd()); ; dir = filepath.Dir(dir) {
		built := filepath.Join(dir, "_output", "forge")
		if _, err := os.Stat(filepath.Join(built, "gitea")); err == nil {
			return built
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("Gitea is not built: make forge")
		}
	}
}

// unprivileged returns the command that runs a program as a user other than root, because Gitea refuses to run as root. A test that runs
// as root makes a user namespace, in which its user has another number and no privilege.
func unprivileged(name string, args ...string) []string {
	command := append([]string{name}, args...)
	if os.Getuid() == 0 {
		return append([]string{"unshare", "--user", "--map-user=1000", "--map-group=1000", "--"}, command...)
	}
	return command
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// as returns a client of a user.
func (f *Forge) as(t testing.TB, user gitea.ClientOption) *gitea.Client {
	t.Helper()
	return kit.Must[*gitea.Client](t)(gitea.NewClient(f.Direct, user, gitea.SetGiteaVersion("")))
}

// Address returns the host and port.
func (f *Forge) Address() string { return strings.TrimPrefix(f.URL, "http://") }

// settings is the configuration: the folder, the port, the address and the folder of templates are filled in. A page of a list has few
// items, so that lists have several pages. Its own address is the configured one, and not the one that a request was sent to. Webhooks may go to a server of the test, whose certificate no authority has signed.
const settings = `APP_NAME = forge of the tests
WORK_PATH = %[1]s
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]s
DOMAIN = 127.0.0.1
ROOT_URL = %[3]s/
PUBLIC_URL_DETECTION = never
STATIC_ROOT_PATH = %[4]s
APP_DATA_PATH = %[1]s/data
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[repository]
ROOT = %[1]s/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = a-key-of-tests
PASSWORD_HASH_ALGO = pbkdf2$1000$20
[api]
MAX_RESPONSE_ITEMS = 10
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = *
SKIP_TLS_VERIFY = true
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[session]
PROVIDER = memory
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
[cron.update_checker]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
`
