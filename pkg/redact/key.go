// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"slices"
	"strings"
)

// keyLimit bounds how much of a key is examined, in bytes. Longer runs of key bytes are digests or encoded
// data, not names.
const keyLimit = 96

// secretKind is what a key implies about its value. A larger kind is stronger evidence of a secret.
type secretKind uint8

const (
	notSecret secretKind = iota
	// secretRandom is a name with many uses: a value under it is a secret if it is a long mixture of
	// letters and digits.
	secretRandom
	// secretOpaque names a vendor or the key of a service: a value under it is a secret if it can only be a
	// key.
	secretOpaque
	// secretKeyed is a name that ends in key: a value under it is a secret if it can be a key.
	secretKeyed
	// secretCount is a token count: a number under it is not a secret.
	secretCount
	// secretPass is the name pass: a number or a word without quotes under it is not a secret.
	secretPass
	secretValue
	// secretHeader is a header whose value reaches to the end of the line.
	secretHeader
)

// countKeys are the normalised names whose numbers are kept: the ten names in the first lines, which must
// always be kept, and the names under which vendors report usage and limits.
var countKeys = setOf(`
	prompttokens completiontokens inputtokens outputtokens cachedinputtokens
	totaltokens totaltokencount tokencount cachedtokens reasoningtokens

	tokens maxtokens maxoutputtokens maxcompletiontokens maxinputtokens maxnewtokens maxtotaltokens
	cachereadinputtokens cachecreationinputtokens cachewriteinputtokens cachewritetokens cachereadtokens cachecreationtokens
	ephemeral5minputtokens ephemeral1hinputtokens
	audiotokens texttokens imagetokens videotokens acceptedpredictiontokens rejectedpredictiontokens
	contexttokens tokensused usedtokens estimatedtokens budgettokens thinkingtokens newtokens numtokens
	promptTokenCount candidatestokencount thoughtstokencount cachedcontenttokencount tooluseprompttokencount
	inputtokencount outputtokencount tokenspersecond tokensperminute tokenspersec
	tokenbudget tokenlimit tokensleft tokensremaining remainingtokens tokensin tokensout
	xratelimitlimittokens xratelimitremainingtokens
`)

// detailKeys are the normalised names of objects that hold only counts.
var detailKeys = setOf(`
	prompttokensdetails completiontokensdetails inputtokensdetails outputtokensdetails
	inputtokendetails outputtokendetails promptTokensDetails candidatestokensdetails cachetokensdetails
`)

// setOf returns the words of a text as a set, in lower case.
func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		set[w] = true
	}
	return set
}

// keyKind classifies a key by its normalised form.
func keyKind(key string) secretKind {
	if len(key) < 3 || !mayName(key) {
		return notSecret
	}
	if last := key[len(key)-1]; last|0x20 == 's' && len(key) <= len("--pass") && strings.EqualFold(strings.TrimLeft(key, "-"), "pass") {
		return secretPass
	}
	if foreignName(key) {
		return secretValue
	}
	var buf [2 * keyLimit]byte
	n := normalize(buf[:0], key)
	kind := findWord(n)
	switch {
	case kind == secretValue && (bytes.HasSuffix(n, []byte("credentialsid")) || bytes.HasSuffix(n, []byte("credentialid")) || bytes.HasSuffix(n, []byte("secretsid"))):
		return notSecret // the name of a store's entry; the secret_id of a role of Vault is a secret
	case kind == secretValue && countKeys[string(n)]:
		return secretCount
	case kind == secretValue && (bytes.HasPrefix(n, []byte("public")) || bytes.HasPrefix(n, []byte("pub"))) && bytes.HasSuffix(n, []byte("key")):
		return notSecret
	case kind == secretKeyed:
		if aboutKey(key) {
			return notSecret
		}
	case kind > notSecret && kind < secretCount:
		if about(n) {
			return notSecret
		}
	}
	return kind
}

// foreignNames are words for passwords that are not ASCII, in small letters.
var foreignNames = strings.Fields("contraseña пароль hasło lösenord 密码 密碼 口令 パスワード 비밀번호 şifre κωδικός")

// foreignName reports whether a key is a word for a password that is not ASCII, or has one.
func foreignName(key string) bool {
	for i := range len(key) {
		if key[i] < 0x80 {
			continue
		}
		key = strings.ToLower(key)
		return slices.ContainsFunc(foreignNames, func(w string) bool { return strings.Contains(key, w) })
	}
	return false
}

// normalize appends key in lower case without '-', '_', '.' and spaces. If the key does not fit, it appends
// the end of the key.
func normalize(b []byte, key string) []byte {
	if len(key) > cap(b) {
		key = key[len(key)-cap(b):]
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c == '-' || c == '_' || c == '.' || c == ' ' || c == '\t':
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		default:
			b = append(b, c)
		}
	}
	return b
}

// findWord returns the strongest kind that a word in the normalised key implies. For example, accesstoken,
// refreshtoken, txntoken and transactiontoken contain token, and clientsecret contains secret.
func findWord(n []byte) secretKind {
	found := notSecret
	for i := 0; i+2 < len(n); i++ {
		if !keyTrigrams.has(trigram(n[i], n[i+1], n[i+2])) {
			continue
		}
		for _, w := range keyWords.starting(n[i], n[i+1]) {
			rest := len(n) - i - len(w.text)
			if w.kind < found || rest < 0 || w.atEnd && rest > 0 || w.least > len(n) || string(n[i:i+len(w.text)]) != w.text {
				continue
			}
			kind := w.kind
			if kind == secretHeader && rest > 0 {
				kind = secretValue
			}
			found = max(found, kind)
		}
	}
	return found
}

// keyWord is a word and the kind that it gives to a key that contains it.
type keyWord struct {
	text  string
	kind  secretKind
	atEnd bool // only the end of a key counts
	least int  // minimum length of the key
}

// wordTable holds words by their first two letters.
type wordTable struct {
	index [1 << 10]uint8
	lists [][]keyWord
}

func (t *wordTable) starting(a, b byte) []keyWord {
	return t.lists[t.index[int(a&31)<<5|int(b&31)]]
}

func (t *wordTable) add(w keyWord) {
	at := &t.index[int(w.text[0]&31)<<5|int(w.text[1]&31)]
	if *at == 0 {
		*at = uint8(len(t.lists))
		t.lists = append(t.lists, nil)
	}
	t.lists[*at] = append(t.lists[*at], w)
}

// keyWords are the words that make a key name a secret.
var keyWords = func() *wordTable {
	t := &wordTable{lists: make([][]keyWord, 1)}
	add := func(kind secretKind, atEnd bool, least int, words string) {
		for w := range strings.FieldsSeq(words) {
			t.add(keyWord{w, kind, atEnd, least})
		}
	}
	// The words that must always be recognised.
	add(secretHeader, false, 0, "authorization cookie txntoken transactiontoken")
	add(secretValue, false, 0, "apikey token secret password passwd pwd credential privatekey")
	// Other names of the same things.
	add(secretValue, false, 0, "accesskey accountkey passphrase clientkeydata passcode")
	add(secretValue, true, 0, `dbpass smtppass mysqlpass pgpass userpass rootpass adminpass mailpass ftppass
		redispass authpass proxypass emailpass sshpass bindpass keypass storepass dbpassword`)
	add(secretValue, true, 0, "masterkey signingkey encryptionkey decryptionkey hmackey sharedkey authkey psk totpseed otpseed mfaseed seedphrase mnemonic walletseed")
	add(secretValue, false, 0, "connectionstring connstring passwort kennwort contrasena motdepasse wachtwoord wachtwort losenord palavrapasse")
	add(secretValue, true, 0, "senha haslo")
	add(secretOpaque, true, 0, `appkey applicationkey licensekey consumerkey
		servicekey storagekey deploykey functionskey subscriptionkey writekey adminkey ingestkey
		integrationkey webhookkey globalkey sendkey userkey clientkey pat sig xamzsignature xgoogsignature
		creds bearer jwt`)
	add(secretOpaque, false, 0, `adafruit adobe airtable algolia alibaba asana atlassian confluence jira beamer bitbucket
		bittrex cloudflare codecov cohere coinbase confluent contentful datadog droneci dropbox etsy facebook
		fastly finicity finnhub flickr freshbooks gitter heroku hubspot intercom artifactory jfrog kraken kucoin
		launchdarkly linkedin mailchimp mailgun mapbox mattermost messagebird meraki netlify newrelic nytimes
		okta plaid privateai rapidapi sendbird sentry snyk sonar squarespace sumologic telegram travisci twitch
		twitter typeform yandex zendesk contribsys gitlabsession discord looker`)
	add(secretKeyed, true, 5, "key")
	add(secretRandom, true, 4, "key auth access")
	return t
}()

// about reports whether a normalised key names a property of a key or a service rather than a secret.
func about(n []byte) bool {
	for _, w := range aboutWords {
		if bytes.Contains(n, w) {
			return true
		}
	}
	return bytes.HasSuffix(n, []byte("id"))
}

var aboutWords = bytes.Fields([]byte(`
	public pub cache primary foreign partition sort finger print hash digest commit version revision
	url uri image checksum build release branch host file path name ref trace span request dedup
	idempoten object bucket route index keyid webhookid config camera
`))

// aboutKey reports whether a word of a key that ends in "key" makes it the key of something rather than a secret:
// primaryKey, cache_key.
func aboutKey(key string) bool {
	for end := len(key); end > 0; {
		for end > 0 && !is(key[end-1], alnum) {
			end--
		}
		from := end
		for from > 0 && is(key[from-1], alnum) {
			from--
			if is(key[from], capital) && !is(key[from], digit) && (from == 0 || !is(key[from-1], capital)) {
				break // camelCase
			}
		}
		if from < end && keysOf[strings.ToLower(key[from:end])] {
			return true
		}
		end = from
	}
	return false
}

// keysOf are the words of aboutKey.
var keysOf = setOf(`public pub cache primary foreign partition sort fingerprint hash digest commit version revision url uri
	image checksum build release branch host file path name ref trace span request dedup idempotency idempotent object
	bucket route routing index lookup group label field column row query event map dict translation i18n locale message
	menu hot keyboard shortcut monkey turkey topic header order unique composite registry metric tag lock attribute
	property annotation node json yaml`)
