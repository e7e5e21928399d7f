// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package escape

// Work is what a program must be able to do in a sandbox.
type Work struct {
	Name    string
	Program string // that must be installed
	Line    string // of bash, in a folder of its own
	Want    string // what the line prints
}

// Works are what agents' programs do most: shells, interpreters, a repository, a build and an archive.
var Works = []Work{
	{"bash", "bash", `echo a > f; cat <(echo b) < f; cat f; [[ -r /dev/stdin ]]; cat <<< c; nproc > /dev/null && sh -c 'kill -0 $$' && (sleep 100 & kill $!) && echo d`, "b\na\nc\nd\n"},
	{"python", "python3", `python3 -c 'import subprocess, socket, tempfile, ssl, json; a, b = socket.socketpair(); a.send(b"x"); print(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout + tempfile.mkdtemp()[:1])'`, "hi\n/\n"},
	{"node", "node", `node -e 'require("child_process").exec("echo hi", (e, out) => console.log(out + require("os").cpus().length.toString().length))'`, "hi\n1\n"},
	{"git", "git", `git init -q r && cd r && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -qm one && git log --format=%s && git mv f g && git clone -q . ../s && ls ../s`, "one\nf\n"},
	{"go", "go", "cat > main.go <<< 'package main; import \"fmt\"; func main() { fmt.Println(6*7) }'; GO111MODULE=off go build -o hello main.go && ./hello", "42\n"},
	{"tar", "tar", `mkdir -p d && chmod 750 d && echo y > d/y && tar cf d.tar d && rm -r d && tar xf d.tar && cat d/y && mv d/y z && cat z`, "y\ny\n"},
}
