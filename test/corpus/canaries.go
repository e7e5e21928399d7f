// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

// Canaries returns the corpus of secrets; it is the same on every call.
func Canaries() []Canary {
	r := newSource(1)
	all := r.prefixed()
	all = append(all, r.shaped()...)
	all = append(all, r.encodedTokens()...)
	all = append(all, r.named()...)
	all = append(all, r.configured()...)
	all = append(all, r.commands()...)
	return append(all, r.keys()...)
}

// form is a prefix, an alphabet and a length: the form of most tokens.
type form struct {
	name, prefix, alphabet string
	length                 int
}

var forms = []form{
	{"OpenAI key", "sk-", alnum, 48},
	{"OpenAI project key", "sk-proj-", word, 120},
	{"OpenAI service account key", "sk-svcacct-", word, 120},
	{"OpenAI admin key", "sk-admin-", word, 120},
	{"OpenAI session", "sess-", alnum, 40},
	{"Anthropic key", "sk-ant-api03-", word, 95},
	{"Anthropic admin key", "sk-ant-admin01-", word, 95},
	{"OpenRouter key", "sk-or-v1-", hex, 64},
	{"DeepSeek key", "sk-", hex, 32},
	{"Groq key", "gsk_", alnum, 52},
	{"Replicate token", "r8_", alnum, 37},
	{"Hugging Face token", "hf_", small + capitals, 34},
	{"Hugging Face organisation token", "api_org_", small + capitals, 34},
	{"Perplexity key", "pplx-", alnum, 48},
	{"xAI key", "xai-", alnum, 80},
	{"Cerebras key", "csk-", alnum, 48},
	{"NVIDIA key", "nvapi-", word, 64},
	{"Tavily key", "tvly-", alnum, 32},
	{"Pinecone key", "pcsk_", word, 70},
	{"LangSmith token", "lsv2_pt_", hex, 32},
	{"LangSmith service key", "lsv2_sk_", hex, 32},
	{"Jina key", "jina_", alnum, 60},
	{"E2B key", "e2b_", hex, 40},
	{"GitHub token", "ghp_", alnum, 36},
	{"GitHub OAuth token", "gho_", alnum, 36},
	{"GitHub user token", "ghu_", alnum, 36},
	{"GitHub server token", "ghs_", alnum, 36},
	{"GitHub refresh token", "ghr_", alnum, 36},
	{"GitHub fine-grained token", "github_pat_", alnum + "_", 82},
	{"GitLab token", "glpat-", word, 20},
	{"GitLab deploy token", "gldt-", word, 20},
	{"GitLab runner token", "glrt-", word, 20},
	{"GitLab job token", "glcbt-", alnum, 26},
	{"GitLab feature flag token", "glffct-", word, 20},
	{"GitLab feed token", "glft-", word, 20},
	{"GitLab mail token", "glimt-", word, 25},
	{"GitLab agent token", "glagent-", word, 50},
	{"GitLab OAuth secret", "gloas-", word, 64},
	{"GitLab trigger token", "glptt-", hex, 40},
	{"GitLab SCIM token", "glsoat-", word, 20},
	{"GitLab registration token", "GR1348941", word, 20},
	{"Bitbucket app password", "ATBB", alnum, 32},
	{"Atlassian token", "ATATT3xFfGF0", word, 180},
	{"Atlassian resource token", "ATCTT3xFfGN0", word, 180},
	{"Slack bot token", "xoxb-", digits, 50},
	{"Slack user token", "xoxp-", word, 60},
	{"Slack workspace token", "xoxa-", word, 40},
	{"Slack refresh token", "xoxr-", word, 40},
	{"Slack legacy token", "xoxs-", word, 40},
	{"Slack configuration token", "xoxe-", word, 146},
	{"Slack client token", "xoxc-", word, 60},
	{"Slack app token", "xapp-1-A", word, 90},
	{"Stripe live key", "sk_live_", alnum, 24},
	{"Stripe test key", "sk_test_", alnum, 24},
	{"Stripe restricted key", "rk_live_", alnum, 24},
	{"Stripe restricted production key", "rk_prod_", alnum, 99},
	{"Stripe webhook secret", "whsec_", alnum, 32},
	{"npm token", "npm_", alnum, 36},
	{"PyPI token", "pypi-AgEIcHlwaS5vcmc", word, 130},
	{"RubyGems key", "rubygems_", hex, 48},
	{"crates.io token", "cio", alnum, 32},
	{"NuGet key", "oy2", digits + small, 43},
	{"Clojars token", "CLOJARS_", hex, 60},
	{"Docker token", "dckr_pat_", word, 27},
	{"Docker organisation token", "dckr_oat_", word, 32},
	{"DigitalOcean token", "dop_v1_", hex, 64},
	{"DigitalOcean OAuth token", "doo_v1_", hex, 64},
	{"DigitalOcean refresh token", "dor_v1_", hex, 64},
	{"Heroku key", "HRKU-AA", word, 58},
	{"Shopify token", "shpat_", hex, 32},
	{"Shopify custom app token", "shpca_", hex, 32},
	{"Shopify private app token", "shppa_", hex, 32},
	{"Shopify shared secret", "shpss_", hex, 32},
	{"Square secret", "sq0csp-", word, 43},
	{"Square token", "sq0atp-", word, 22},
	{"Square access token", "EAAA", word, 60},
	{"Facebook page token", "EAAM", alnum, 120},
	{"Linear key", "lin_api_", alnum, 40},
	{"Linear OAuth token", "lin_oauth_", hex, 64},
	{"Notion token", "ntn_", alnum, 46},
	{"Notion secret", "secret_", alnum, 43},
	{"Postman key", "PMAK-", hex, 59},
	{"New Relic user key", "NRAK-", digits + capitals, 27},
	{"New Relic browser key", "NRJS-", hex, 19},
	{"New Relic insert key", "NRII-", word, 32},
	{"Grafana token", "glsa_", alnum, 41},
	{"Grafana Cloud token", "glc_", alnum, 90},
	{"Sentry user token", "sntryu_", hex, 64},
	{"Sentry organisation token", "sntrys_", alnum, 130},
	{"Vault token", "hvs.", word, 96},
	{"Vault batch token", "hvb.", word, 140},
	{"Vault old token", "s.", alnum, 24},
	{"Doppler token", "dp.pt.", alnum, 43},
	{"Doppler service account token", "dp.sa.", alnum, 43},
	{"Databricks token", "dapi", hex, 32},
	{"Figma token", "figd_", word, 43},
	{"Supabase token", "sbp_", hex, 40},
	{"Tailscale key", "tskey-auth-", alnum, 40},
	{"Fly.io token", "fo1_", word, 43},
	{"Fly.io macaroon", "fm2_", b64, 120},
	{"Netlify token", "nfp_", alnum, 36},
	{"Vercel token", "vcp_", alnum, 56},
	{"Buildkite token", "bkua_", hex, 40},
	{"CircleCI token", "CCIPAT_", word, 64},
	{"Sourcegraph token", "sgp_", hex, 40},
	{"Sonar user token", "squ_", hex, 40},
	{"Sonar project token", "sqp_", hex, 40},
	{"PlanetScale token", "pscale_tkn_", word, 43},
	{"PlanetScale password", "pscale_pw_", word, 43},
	{"PlanetScale OAuth token", "pscale_oauth_", word, 43},
	{"Prefect key", "pnu_", alnum, 36},
	{"Pulumi token", "pul-", hex, 40},
	{"ReadMe token", "rdme_", digits + small, 70},
	{"Shippo token", "shippo_live_", hex, 40},
	{"Duffel token", "duffel_test_", word, 43},
	{"Typeform token", "tfp_", word, 59},
	{"Brevo key", "xkeysib-", hex, 81},
	{"Mailgun key", "key-", hex, 32},
	{"Twilio key", "SK", hex, 32},
	{"Alibaba key id", "LTAI", alnum, 20},
	{"EasyPost key", "EZAK", alnum, 54},
	{"EasyPost test key", "EZTK", alnum, 54},
	{"Artifactory key", "AKCp", alnum, 69},
	{"Artifactory reference token", "cmVmd", alnum, 59},
	{"ClickHouse Cloud key", "4b1d", alnum, 38},
	{"Yandex key", "AQVN", word, 36},
	{"Google key", "AIza", word, 35},
	{"Google OAuth token", "ya29.", word, 100},
	{"Google client secret", "GOCSPX-", word, 28},
	{"Google refresh token", "1//0", word, 60},
	{"AWS key id", "AKIA", digits + capitals, 16},
	{"AWS temporary key id", "ASIA", digits + capitals, 16},
	{"AWS bearer key id", "ABIA", digits + capitals, 16},
	{"AWS context key id", "ACCA", digits + capitals, 16},
	{"Bedrock key", "ABSK", alnum, 120},
	{"Bedrock short-lived key", "bedrock-api-key-", alnum, 120},
	{"EKS token", "k8s-aws-v1.", alnum, 200},
	{"OpenShift token", "sha256~", word, 43},
	{"age key", "AGE-SECRET-KEY-1", digits + capitals, 58},
	{"1Password service account", "ops_eyJ", alnum, 260},
	{"Octopus key", "API-", digits + capitals, 26},
	{"Adobe secret", "p8e-", digits + small, 32},
	{"Frame.io token", "fio-u-", word, 64},
	{"Infracost key", "ico-", alnum, 32},
	{"Intra42 secret", "s-s4t2ud-", hex, 64},
	{"Scalingo token", "tk-us-", word, 48},
	{"Contentful token", "CFPAT-", word, 43},
	{"Cloudflare origin key", "v1.0-", hex, 171},
	{"Dropbox token", "sl.", word, 135},
	{"SendGrid key", "SG.", word, 66},
	{"SettleMint token", "sm_aat_", alnum, 16},
	{"Flutterwave key", "FLWSECK_TEST-", hex, 32},
	{"PASETO", "v2.local.", word, 120},
}

func (r source) prefixed() []Canary {
	var all []Canary
	for _, f := range forms {
		body := r.of(f.alphabet, f.length)
		c := Canary{Name: f.name, Text: f.prefix + body, Secrets: []string{body}, Bare: true}
		if f.length >= 24 && f.alphabet != digits && f.prefix != "1//0" && f.prefix != "s." && f.prefix != "sha256~" {
			// Both halves begin with a letter or a digit and mix kinds of characters.
			half := f.length / 2
			first, second := r.of(f.alphabet, half), r.of(f.alphabet, f.length-half)
			c.Text, c.Secrets = f.prefix+first+second, []string{first + second, first, second}
			c.split = len(f.prefix) + half
		}
		all = append(all, c)
	}
	return all
}

// shaped are tokens of several parts.
func (r source) shaped() []Canary {
	var all []Canary
	add := func(name, text string, secrets ...string) {
		all = append(all, Canary{Name: name, Text: text, Secrets: secrets, Bare: true})
	}
	a, b, c := r.of(alnum, 24), r.of(alnum, 6), r.of(word, 38)
	add("Discord bot token", "M"+a+"."+b+"."+c, a, c)
	a = r.of(word, 34)
	add("Telegram bot token", r.of(digits, 10)+":A"+a, a)
	a = r.of(word, 35)
	add("Facebook app token", r.of(digits, 16)+"|"+a, a)
	a, b = r.of(alnum, 14), r.of(word, 64)
	add("Terraform Cloud token", a+".atlasv1."+b, b)
	a, b = r.of(alnum, 24), r.of(alnum, 64)
	add("Dynatrace token", "dt0c01."+a+"."+b, b)
	a, b = r.of(alnum, 24), r.of(alnum, 20)
	add("Harness token", "pat."+r.of(word, 22)+"."+a+"."+b, a, b)
	a = r.of(hex, 64)
	add("Airtable token", "pat"+r.of(alnum, 14)+"."+a, a)
	a = r.of(digits+small, 60)
	add("Mapbox token", "sk."+a+"."+r.of(digits+small, 22), a)
	a = r.of(word, 86)
	add("Yandex IAM token", "t1."+r.of(word, 40)+"."+a, a)
	a = r.of(digits+small, 60)
	add("Authress key", "sc_"+r.of(digits+small, 12)+"."+r.of(digits+small, 5)+".acc_"+r.of(digits+small, 16)+"."+a, a)
	a = r.of(hex, 32)
	add("Mailchimp key", a+"-us14", a)
	a = r.of(alnum, 29)
	add("MaxMind key", r.of(alnum, 6)+"_"+a+"_mmk", a)
	a = r.of(alnum, 33)
	add("Entra client secret", r.of(alnum, 3)+"8Q~"+a, a)
	a = r.of(alnum, 31)
	add("Entra client secret with a tilde", r.of(alnum, 3)+"7Q~"+a+"~a", a)
	a = r.uuid()
	add("Plaid token", "access-production-"+a, a)
	a = r.uuid()
	add("Riot key", "RGAPI-"+a, a)
	a, b = r.of(digits+capitals, 6), r.of(digits+capitals, 5)
	add("1Password key", "A3-"+a+"-"+r.of(digits+capitals, 6)+"-"+b+"-"+r.of(digits+capitals, 5)+"-"+r.of(digits+capitals, 5), a+"-", "-"+b+"-")
	a = r.of(alnum, 22) + "." + r.of(alnum, 43)
	add("SendGrid key of two parts", "SG."+a, a)
	a = r.of(word, 27) + "." + r.of(digits+small, 9)
	add("GitLab routable token", "glpat-"+a, a[:27])
	a = r.of(hex, 24) + "-" + r.of(hex, 34)
	add("Postman key of two parts", "PMAK-"+a, a)
	a = r.of(digits, 12) + "-" + r.of(digits, 13) + "-" + r.of(alnum, 24)
	add("Slack bot token of three parts", "xoxb-"+a, a)
	a = r.of(alnum, 16) + "-" + r.of(alnum, 32)
	add("Tailscale key of two parts", "tskey-api-"+a, a)
	return all
}
