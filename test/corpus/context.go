// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// encodedTokens are tokens in base64, and those that are base64 themselves.
func (r source) encodedTokens() []Canary {
	std, url := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	var all []Canary
	add := func(name, text string, split int, secrets ...string) {
		all = append(all, Canary{Name: name, Text: text, Secrets: secrets, Bare: true, split: split})
	}
	claims := url([]byte(`{"iss":"https://issuer.example.com","sub":"` + r.of(alnum, 20) + `","exp":1893456000}`))
	head, sign := url([]byte(`{"alg":"RS256","kid":"`+r.of(alnum, 12)+`"}`)), r.of(word, 86)
	jwt := head + "." + claims + "." + sign
	add("JWT", jwt, 0, claims, sign)
	add("JWT wrapped in its head", jwt, 20, claims, sign)
	add("JWT wrapped in its claims", jwt, len(head)+1+len(claims)/2, sign)
	add("JWT wrapped in its signature", jwt, len(jwt)-40, claims)
	add("JWT without signature", head+"."+claims+".", 0, claims)
	add("encrypted JWT", head+"."+r.of(word, 40)+"."+r.of(word, 16)+"."+sign+"."+r.of(word, 22), 0, sign)
	add("Grafana key", std([]byte(`{"k":"`+r.of(alnum, 32)+`","n":"dashboards","id":1}`)), 0)
	all[len(all)-1].Secrets = []string{all[len(all)-1].Text[10:60]}

	pair := std([]byte("x-access-token:" + "ghs_" + r.of(alnum, 36)))
	add("base64 of a name and a token", pair, 0, pair)
	pair = std([]byte("oauth2:" + "glpat-" + r.of(word, 20)))
	add("base64 of a name and a GitLab token", pair, 0, pair)
	pair = std([]byte(jwt))
	add("base64 of a JWT", pair, 0, pair)
	file := std([]byte(`{"type": "service_account", "private_key": "` + strings.ReplaceAll(r.pem("PRIVATE KEY", 12), "\n", `\n`) + `"}`))
	add("base64 of a service account", file, 0, file)
	file = std([]byte(r.pem("EC PRIVATE KEY", 4)))
	add("base64 of a key", file, 0, file)
	wrapped := strings.TrimRight(regroup(std([]byte(r.pem("RSA PRIVATE KEY", 24))), 76), "\n")
	lines := strings.Split(wrapped, "\n")
	all = append(all, Canary{Name: "base64 of a key, in lines", Text: wrapped, Secrets: lines[:len(lines)-1]})

	basic := std([]byte("bob:" + r.of(alnum, 14)))
	all = append(all,
		Canary{Name: "basic authorization", Text: "Authorization: Basic " + basic, Secrets: []string{basic}},
		Canary{Name: "basic authorization in lower case", Text: "authorization: basic " + basic, Secrets: []string{basic}},
		Canary{Name: "basic authorization outside a header", Text: "sent with Basic " + basic + " as it should", Secrets: []string{basic}},
		Canary{Name: "docker configuration", Text: `{"auths":{"registry.example.com":{"auth":"` + basic + `"}}}`, Secrets: []string{basic}},
		Canary{Name: "npm configuration with base64", Text: "//registry.example.com/:_auth=" + basic, Secrets: []string{basic}},
		Canary{Name: "git extra header", Text: `git -c http.extraheader="AUTHORIZATION: basic ` + basic + `" fetch`, Secrets: []string{basic}},
	)
	return all
}

// regroup breaks s into lines of n characters.
func regroup(s string, n int) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return b.String() + s + "\n"
}

// pem returns a block of the kind with so many lines.
func (r source) pem(kind string, lines int) string {
	return "-----BEGIN " + kind + "-----\n" + regroup(r.of(b64, 64*lines-6)+"==", 64) + "-----END " + kind + "-----\n"
}

// keys are blocks of key material.
func (r source) keys() []Canary {
	var all []Canary
	add := func(name, text string) {
		c := Canary{Name: name, Text: strings.TrimRight(text, "\n")}
		for _, part := range strings.FieldsFunc(text, func(c rune) bool { return !strings.ContainsRune(b64+"=", c) }) {
			if len(part) >= 40 {
				c.Secrets = append(c.Secrets, strings.TrimPrefix(part, "n"))
			}
		}
		all = append(all, c)
	}
	for _, kind := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"} {
		add(strings.ToLower(kind)+" block", r.pem(kind, 5))
	}
	add("PGP private key block", strings.Replace(r.pem("PGP PRIVATE KEY BLOCK", 5), "-----\n", "-----\nVersion: GnuPG v2.4 (Linux)\nComment: https://gpg.example.com <a@example.com>\n\n", 1))
	add("key block with headers", strings.Replace(r.pem("RSA PRIVATE KEY", 5), "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"+r.of(digits+"ABCDEF", 32)+"\n\n", 1))
	add("SSH2 key block", strings.ReplaceAll(strings.ReplaceAll(r.pem("SSH2 ENCRYPTED PRIVATE KEY", 4), "-----BEGIN", "---- BEGIN"), "-----END", "---- END"))
	add("key block on one line", strings.ReplaceAll(r.pem("PRIVATE KEY", 4), "\n", `\n`))
	add("key block in YAML", "tls:\n  key: |\n    "+strings.ReplaceAll(strings.TrimSpace(r.pem("PRIVATE KEY", 4)), "\n", "\n    ")+"\n  other: 1")
	add("key block in a program", "const key = \""+strings.ReplaceAll(strings.TrimSpace(r.pem("EC PRIVATE KEY", 3)), "\n", "\\n\" +\n\t\"")+"\"")
	cut := r.pem("PRIVATE KEY", 6)
	add("key block without an end", cut[:300])
	add("key block without a beginning", cut[100:])
	account := quoted(map[string]any{"type": "service_account", "private_key_id": r.of(hex, 40), "private_key": r.pem("PRIVATE KEY", 12), "client_email": "a@b.example.com"})
	add("service account key", account)
	return all
}

// named are values that can be recognised only by their names.
func (r source) named() []Canary {
	var all []Canary
	add := func(name, format string, secret string) {
		all = append(all, Canary{Name: name, Text: fmt.Sprintf(format, secret), Secrets: []string{secret}})
	}
	for _, key := range []string{
		"API_KEY", "apiKey", "x-api-key", "MY_SERVICE_TOKEN", "client_secret", "DB_PASSWORD", "passwd", "credential",
		"PRIVATE-KEY", "refresh_token", "accessToken", "aws_secret_access_key", "SECRET_KEY_BASE", "passphrase", "MYSQL_PWD",
		"CF_ACCESS_CLIENT_SECRET", "DJANGO_SECRET_KEY", "TF_VAR_db_password", "DB_PASS", "SMTP_PASS", "totp_seed", "wifi_psk", "CONNECTION_STRING",
		"MASTER_KEY", "pass", "Passwort", "mot_de_passe", "contraseña", "senha", "wachtwoord", "пароль",
	} {
		add("variable "+key, "export "+key+"=%s", r.of(alnum, 14))
	}
	for _, key := range []string{"password", "db.password", "clientSecret", "api key", "secret key", "auth_token", "Secret Access Key"} {
		add("colon "+key, key+": %s", r.of(alnum, 14))
	}
	for _, key := range []string{
		"datadog_app_key", "DATADOG_KEY", "fastly_key", "FASTLY_PURGE_KEY", "netlify_auth", "cloudflare_global_key", "snyk_key", "okta_client_auth",
		"twitter_consumer_key", "mattermost_access", "newrelic_insights_key", "ENCRYPTION_KEY", "signing_key",
		"STRIPE_SIGNING_KEY", "license_key", "x-functions-key", "Ocp-Apim-Subscription-Key", "X-Auth-Key", "STORAGE_ACCOUNT_ACCESS_KEY",
	} {
		add("service key "+key, key+": %s", r.of(alnum, 40))
	}
	for _, key := range []string{"HEROKU_KEY", "hubspot_key", "sendbird_key", "squarespace_auth"} {
		add("service UUID "+key, key+"=%s", r.uuid())
	}
	add("key that is random", "UPLOAD_KEY=%s", r.of(alnum, 44))
	add("password of words", `password = "%s"`, "correct horse battery staple")
	add("password with signs", `password: "%s"`, "p@ss/w0rd+"+r.of(alnum, 8)+"!#$%&*(){}")
	add("escaped quotes", `{\"user\":\"bob\",\"password\":\"%s\"}`, r.of(alnum, 14))
	add("twice escaped quotes", `"{\\\"user\\\":\\\"bob\\\",\\\"password\\\":\\\"%s\\\"}"`, r.of(alnum, 14))
	add("pass in JSON", `{"user":"bob","pass":"%s"}`, r.of(alnum, 14))
	add("name and value of a compound key", "- name: master_key\n  value: %s", r.of(alnum, 14))
	add("words with dots in a header", "Txn-Token: gateway.session.%s", "swordfish")
	add("words with dots under a key", "password: gateway.session.%s", "swordfish")
	add("percent-encoded token", "x ghp%%5F%s y", r.of(alnum, 36))
	add("plain language", "the password is %s and it works", r.of(alnum, 14))
	add("plain language, quoted", `My api key is "%s".`, r.of(alnum, 14))
	add("coloured", "\x1b[36mpassword\x1b[0m=%s", r.of(alnum, 14))
	add("coloured value", "password: \x1b[33m%s\x1b[0m", r.of(alnum, 14))
	add("environment of a process", "HOME=/root\x00DB_PASSWORD=%s\x00LANG=C", r.of(alnum, 14))
	add("form", "grant_type=client_credentials&client_id=a&client_secret=%s&scope=b", r.of(alnum, 30))
	add("YAML block", "user: bob\npassword: |\n  %s\nhost: db", r.of(alnum, 14))
	add("YAML folded block", "- name: a\n  token: >-\n    %s\n- name: b", r.of(alnum, 30))
	add("value on the next line", "auth:\n  password:\n    %s\n  user: bob", r.of(alnum, 14))
	add("value below its title", "Your API key:\n\n%s\n\nKeep it safe.", r.of(alnum, 32))
	add("JSON over lines", "{\n  \"tokens\": [\n    \"%s\"\n  ]\n}", r.of(alnum, 14))
	add("variable of a container", "env:\n- name: DB_PASSWORD\n  value: %s\n- name: B\n  value: c", r.of(alnum, 14))
	add("variable of a container, quoted", "- name: API_KEY\n  value: \"%s\"", r.of(alnum, 14))
	add("XML attribute", `<add key="ClearTextPassword" value="%s" />`, r.of(alnum, 14))
	add("XML element", "<server><username>bob</username><password>%s</password></server>", r.of(alnum, 14))
	add("array", `token = ["%s"]`, r.of(alnum, 14))
	a, b := r.of(alnum, 14), r.of(alnum, 14)
	all = append(all,
		Canary{Name: "sum of strings", Text: "password := \"" + a + "\" +\n\t\"" + b + "\"", Secrets: []string{a, b}},
		Canary{Name: "backslash in the value", Text: "export DB_PASSWORD=" + a + "\\\n" + b + "\nnext", Secrets: []string{a, b}},
		Canary{Name: "string over two lines", Text: "PASSWORD=\"" + a + "\n" + b + "\"\nnext", Secrets: []string{a, b}},
	)
	return all
}

// configured are secrets in files of well-known programs.
func (r source) configured() []Canary {
	var all []Canary
	add := func(name, format string, secret string) {
		all = append(all, Canary{Name: name, Text: fmt.Sprintf(format, secret), Secrets: []string{secret}})
	}
	word14 := func() string { return r.of(alnum, 14) }
	add("netrc on a line", "machine git.example.com login bob password %s", word14())
	add("netrc in lines", "machine git.example.com\n  login bob\n  password %s\n", word14())
	add("netrc default", "default login anonymous password %s", word14())
	add("pgpass", "db.example.com:5432:*:bob:%s", word14())
	add("npmrc", "//registry.npmjs.org/:_authToken=%s", r.uuid())
	add("pip configuration", "[global]\nindex-url = https://bob:%s@pypi.example.com/simple", word14())
	add("cargo credentials", "[registry]\ntoken = \"%s\"", r.of(alnum, 32))
	add("kubeconfig token", "users:\n- name: admin\n  user:\n    token: %s", r.of(alnum, 40))
	add("kubeconfig key", "    client-key-data: %s", r.of(b64, 120))
	add("AWS credentials", "[default]\naws_access_key_id = x\naws_secret_access_key = %s", r.of(b64, 40))
	add("AWS prompt", "AWS Secret Access Key [None]: %s", r.of(b64, 40))
	add("AWS pair", "AKIA"+r.of(digits+capitals, 16)+":%s", r.of(b64, 40))
	add("AWS session token", "AWS_SESSION_TOKEN=%s", r.of(b64, 200))
	add("Azure storage", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%s==;EndpointSuffix=core.windows.net", r.of(b64, 86))
	add("Azure service bus", "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=%s=", r.of(b64, 43))
	add("Azure SAS", "sv=2022-11-02&ss=b&srt=sco&sp=rl&se=2030-01-01T00:00:00Z&sig=%s%%3D", r.of(alnum, 43))
	add("Azure SAS URL", "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=%s%%3D", r.of(alnum, 43))
	add("SQL Server", "Server=db;Database=a;User Id=bob;Password=%s;Encrypt=true", word14())
	add("ODBC", "Driver={ODBC};Uid=bob;Pwd=%s;", word14())
	add("JDBC", "jdbc:mysql://db.example.com:3306/a?user=bob&password=%s", word14())
	add("PostgreSQL URL", "postgres://bob:%s@db.example.com:5432/a?sslmode=require", word14())
	add("MongoDB URL", "mongodb+srv://bob:%s@cluster0.example.mongodb.net/a", word14())
	add("Redis URL", "redis://:%s@cache.example.com:6379/0", word14())
	add("AMQP URL", "amqp://bob:%s@mq.example.com:5672/vhost", word14())
	add("MySQL data source", "bob:%s@tcp(db.example.com:3306)/a?parseTime=true", word14())
	add("PostgreSQL keywords", "host=db user=bob password=%s dbname=a", word14())
	add("Slack webhook", "https://hooks.slack.com/services/T"+r.of(digits+capitals, 8)+"/B"+r.of(digits+capitals, 8)+"/%s", r.of(alnum, 24))
	add("Discord webhook", "https://discord.com/api/webhooks/"+r.of(digits, 18)+"/%s", r.of(word, 68))
	add("Teams webhook", "https://a.webhook.office.com/webhookb2/"+r.uuid()+"@"+r.uuid()+"/IncomingWebhook/%s/"+r.uuid(), r.of(hex, 32))
	add("Telegram URL", "https://api.telegram.org/bot"+r.of(digits, 10)+":A%s/getMe", r.of(word, 34))
	add("manifest of a Secret", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\ndata:\n  value: %s", r.of(b64, 24))
	add("manifest of a Secret, kind last", "apiVersion: v1\ndata:\n  value: %s\nkind: Secret\nmetadata:\n  name: a", r.of(b64, 24))
	add("manifest of a Secret with text", "kind: Secret\nstringData:\n  config: |\n    %s\n  b: c\ntype: Opaque", word14())
	add("manifest of a Secret in JSON", `{"apiVersion":"v1","data":{"value":"%s"},"kind":"Secret","metadata":{"name":"a"}}`, r.of(b64, 24))
	add("set-cookie", "Set-Cookie: sid=%s; Path=/; HttpOnly", r.of(alnum, 32))
	add("cookie", "Cookie: a=b; session=%s", r.of(alnum, 32))
	add("transaction token", "Txn-Token: %s", r.of(alnum, 32))
	add("private token header", "PRIVATE-TOKEN: %s", r.of(alnum, 20))
	add("digest authorization", `Authorization: Digest username="bob", response="%s"`, r.of(hex, 32))
	add("AWS authorization", "Authorization: AWS4-HMAC-SHA256 Credential=x/20261121/eu/s3/aws4_request, Signature=%s", r.of(hex, 64))
	add("GitLab session", "_gitlab_session=%s", r.of(hex, 32))
	return all
}

// commands are secrets among the arguments of programs.
func (r source) commands() []Canary {
	var all []Canary
	for _, format := range []string{
		"curl -u bob:%s https://api.example.com/v1",
		"curl -sS --user 'bob:%s' https://api.example.com/v1",
		"curl --proxy-user bob:%s -x proxy:3128 https://api.example.com",
		`curl -H "Authorization: Bearer %s" https://api.example.com`,
		`curl --header 'X-Api-Key: %s' https://api.example.com`,
		`curl -b "sid=%s" https://api.example.com`,
		`curl -d '{"password":"%s"}' https://api.example.com/login`,
		"curl https://bob:%s@api.example.com/v1",
		"curl -d client_secret=%s https://api.example.com/token",
		"docker login -u bob -p %s registry.example.com",
		"docker login --username bob --password %s registry.example.com",
		"helm registry login -u bob -p '%s' registry.example.com",
		"mysql -u root -p%s -h db.example.com",
		"mysqldump --password=%s -u root a",
		"sshpass -p %s ssh bob@db.example.com",
		"redis-cli -h cache -a %s ping",
		"PGPASSWORD=%s psql -h db -U bob a",
		"git clone https://x-access-token:%s@github.com/a/b.git",
		"kubectl create secret generic a --from-literal=password=%s",
		"kubectl --token=%s get pods",
		"vault login token=%s",
		"az login --service-principal -u app -p %s --tenant t",
		"wget --http-password=%s https://api.example.com",
		"aws configure set aws_secret_access_key %s",
		"tool --pass %s run",
		"tool --encryption-key %s run",
		"npm config set //registry.npmjs.org/:_authToken %s",
		"export API_TOKEN='%s' && ./run.sh",
		"setx API_TOKEN %s",
		"echo %s | docker login --password-stdin",
		"$env:API_TOKEN = \"%s\"",
		"set -x API_TOKEN %s",
		"ENV API_TOKEN %s",
		"CREATE USER 'bob'@'%%' IDENTIFIED BY '%s';",
		"ALTER USER bob IDENTIFIED WITH mysql_native_password BY '%s';",
		"create user bob identified by %s account unlock",
		"ALTER ROLE bob WITH LOGIN PASSWORD '%s';",
		`psql -c "create user bob with password '%s'"`,
		"openssl rsa -in key.pem -passin pass:%s -out plain.pem",
		"openssl pkcs12 -export -passout pass:%s -in a.pem",
		"keytool -genkey -storepass %s -alias a",
		"Unseal Key 1: %s",
		"vault operator unseal %s",
		"Initial Root Token: %s",
		"The initial password is %s",
		"initial admin password: %s",
		"Please use the following password to proceed to installation:\n\n%s\n\nThis may also be found in a file.",
		"[Note] A temporary password is generated for root@localhost: %s",
		"mariadb -u root -p%s a",
		"mongosh --host db -u bob -p %s",
		"sqlcmd -S db -U bob -P %s -Q 'select 1'",
		"ldapsearch -D cn=admin -w %s -b dc=example",
		"zip -e -P %s a.zip b",
		"7z x -p%s a.7z",
		`ConvertTo-SecureString -AsPlainText -Force -String "%s"`,
		`ConvertTo-SecureString "%s" -AsPlainText -Force`,
	} {
		secret := r.of(alnum, 16)
		format = strings.ReplaceAll(format, `\n`, "\n")
		if strings.HasPrefix(format, "echo") {
			secret = "ghp_" + r.of(alnum, 36)
		}
		name, _, _ := strings.Cut(format, "%s")
		all = append(all, Canary{Name: "command " + strings.TrimSpace(name), Text: fmt.Sprintf(format, secret), Secrets: []string{secret}})
	}
	return all
}
