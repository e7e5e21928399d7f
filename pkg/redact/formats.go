// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

// known is a credential that is recognised by its first characters. The lengths are those of the part after
// the prefix. If both are equal, exactly that many characters must follow. A full of 0 means that the
// length is not known.
type known struct {
	prefix string
	of     class
	min    int
	full   int
}

// marked are the prefixes that end in '-', '_' or '.', the bytes at which the scan calls a matcher. The
// prefixes sk-, gh?_, github_pat_ and xox?- and their minimum lengths are requirements. The others are
// published by vendors and secret scanners.
var marked = [...]known{
	{"sk-", wordByte, 20, 0}, // OpenAI, Anthropic, DeepSeek, OpenRouter
	{"sess-", alnum, 40, 40},
	{"xoxb-", wordByte, 20, 0}, // Slack
	{"xoxa-", wordByte, 20, 0},
	{"xoxp-", wordByte, 20, 0},
	{"xoxr-", wordByte, 20, 0},
	{"xoxs-", wordByte, 20, 0},
	{"xoxo-", wordByte, 20, 0},
	{"xoxe-", wordByte, 20, 0},
	{"xoxc-", wordByte, 20, 0},
	{"xoxd-", tokenByte, 20, 0},
	{"xapp-", wordByte, 20, 0},
	{"glpat-", wordByte, 20, 0}, // GitLab
	{"gldt-", wordByte, 20, 20},
	{"glrt-", wordByte, 20, 0},
	{"glrtr-", wordByte, 20, 0},
	{"glcbt-", wordByte, 20, 0},
	{"glffct-", wordByte, 20, 20},
	{"glft-", wordByte, 20, 20},
	{"glimt-", wordByte, 20, 25},
	{"glagent-", wordByte, 40, 50},
	{"gloas-", wordByte, 40, 64},
	{"glptt-", wordByte, 40, 40},
	{"glsoat-", wordByte, 20, 20},
	{"glwt-", wordByte, 20, 0},
	{"pypi-", wordByte, 40, 0},
	{"pplx-", alnum, 40, 48},
	{"xai-", alnum, 40, 80},
	{"csk-", alnum, 40, 48}, // Cerebras
	{"nvapi-", wordByte, 40, 64},
	{"tvly-", wordByte, 20, 0},
	{"sq0csp-", wordByte, 30, 43}, // Square
	{"sq0atp-", wordByte, 22, 22},
	{"AGE-SECRET-KEY-", alnum, 40, 59},
	{"AGE-PLUGIN-", serial, 40, 0},
	{"GOCSPX-", wordByte, 20, 28}, // Google
	{"PMAK-", wordByte, 50, 59},   // Postman
	{"NRAK-", alnum, 27, 27},      // New Relic
	{"NRJS-", hex, 19, 19},
	{"NRII-", wordByte, 32, 32},
	{"HRKU-", wordByte, 36, 60}, // Heroku
	{"key-", hex, 32, 32},       // Mailgun
	{"pubkey-", hex, 32, 32},
	{"xkeysib-", wordByte, 60, 81}, // Brevo
	{"xsmtpsib-", wordByte, 60, 81},
	{"pul-", hex, 40, 40}, // Pulumi
	{"p8e-", alnum, 32, 32},
	{"fio-u-", tokenByte, 50, 64},
	{"dnkey-", wordByte, 60, 0},
	{"ico-", alnum, 32, 32},
	{"s-s4t2ud-", hex, 64, 64},
	{"s-s4t2af-", hex, 64, 64},
	{"tk-us-", wordByte, 48, 48},
	{"API-", capital, 25, 26}, // Octopus
	{"A3-", serial, 31, 0},    // 1Password
	{"CFPAT-", wordByte, 40, 43},
	{"FLWSECK-", wordByte, 30, 0},
	{"FLWSECK_TEST-", wordByte, 12, 0},
	{"access-sandbox-", wordByte, 36, 36}, // Plaid
	{"access-development-", wordByte, 36, 36},
	{"access-production-", wordByte, 36, 36},
	{"bedrock-api-key-", base64Byte, 30, 0},
	{"tskey-", wordByte, 20, 0}, // Tailscale
	{"v1.0-", wordByte, 100, 171},
	{"RGAPI-", wordByte, 36, 36},

	{"ghp_", wordByte, 20, 36}, // GitHub
	{"gho_", wordByte, 20, 36},
	{"ghu_", wordByte, 20, 36},
	{"ghs_", wordByte, 20, 36},
	{"ghr_", wordByte, 20, 36},
	{"github_pat_", wordByte, 30, 82},
	{"sk_live_", alnum, 10, 0}, // Stripe
	{"sk_test_", alnum, 10, 0},
	{"sk_prod_", alnum, 10, 0},
	{"rk_live_", alnum, 10, 0},
	{"rk_test_", alnum, 10, 0},
	{"rk_prod_", alnum, 10, 0},
	{"whsec_", base64Byte, 24, 0},
	{"npm_", alnum, 30, 36},
	{"hf_", alnum, 30, 34},
	{"api_org_", alnum, 30, 34},
	{"gsk_", alnum, 40, 52},
	{"r8_", alnum, 30, 37},
	{"pcsk_", wordByte, 40, 0}, // Pinecone
	{"lsv2_pt_", wordByte, 32, 0},
	{"lsv2_sk_", wordByte, 32, 0},
	{"jina_", alnum, 40, 60},
	{"e2b_", hex, 40, 40},
	{"dop_v1_", hex, 40, 64}, // DigitalOcean
	{"doo_v1_", hex, 40, 64},
	{"dor_v1_", hex, 40, 64},
	{"shpat_", hex, 30, 32}, // Shopify
	{"shpca_", hex, 30, 32},
	{"shppa_", hex, 30, 32},
	{"shpss_", hex, 30, 32},
	{"glsa_", wordByte, 30, 41}, // Grafana
	{"glc_", base64Byte, 32, 0},
	{"dckr_pat_", wordByte, 20, 27},
	{"dckr_oat_", wordByte, 20, 32},
	{"lin_api_", alnum, 30, 40}, // Linear
	{"lin_oauth_", alnum, 30, 64},
	{"sbp_", alnum, 40, 40}, // Supabase
	{"figd_", wordByte, 30, 0},
	{"ntn_", alnum, 40, 46}, // Notion
	{"secret_", alnum, 43, 43},
	{"sntrys_", tokenByte, 40, 0}, // Sentry
	{"sntryu_", hex, 64, 64},
	{"rubygems_", hex, 48, 48},
	{"rdme_", alnum, 70, 70},
	{"shippo_live_", hex, 40, 40},
	{"shippo_test_", hex, 40, 40},
	{"duffel_live_", wordByte, 40, 43},
	{"duffel_test_", wordByte, 40, 43},
	{"pscale_tkn_", keyByte, 32, 0}, // PlanetScale
	{"pscale_pw_", keyByte, 32, 0},
	{"pscale_oauth_", keyByte, 32, 0},
	{"pnu_", alnum, 36, 36},
	{"sgp_", wordByte, 40, 0}, // Sourcegraph
	{"sm_aat_", alnum, 16, 16},
	{"sm_pat_", alnum, 16, 16},
	{"sm_sat_", alnum, 16, 16},
	{"squ_", hex, 40, 40}, // Sonar
	{"sqp_", hex, 40, 40},
	{"sqa_", hex, 40, 40},
	{"tfp_", tokenByte, 50, 59},
	{"ops_", base64Byte, 100, 0}, // 1Password
	{"CLOJARS_", alnum, 60, 60},
	{"fo1_", wordByte, 43, 43}, // Fly.io
	{"fm1a_", base64Byte, 80, 0},
	{"fm1r_", base64Byte, 80, 0},
	{"fm2_", base64Byte, 80, 0},
	{"nfp_", alnum, 36, 36}, // Netlify
	{"vcp_", alnum, 24, 0},  // Vercel
	{"vck_", alnum, 24, 0},
	{"bkua_", hex, 40, 40},
	{"CCIPAT_", wordByte, 40, 0},
	{"waka_", wordByte, 36, 36},

	{"hvs.", wordByte, 20, 0}, // Vault
	{"hvb.", wordByte, 20, 0},
	{"hvr.", wordByte, 20, 0},
	{"SG.", keyByte, 40, 66},
	{"ya29.", keyByte, 20, 0},
	{"sl.", wordByte, 100, 0}, // Dropbox
	{"dp.pt.", alnum, 40, 43}, // Doppler
	{"dp.st.", keyByte, 40, 0},
	{"dp.ct.", alnum, 40, 43},
	{"dp.sa.", alnum, 40, 43},
	{"dp.scim.", alnum, 40, 43},
	{"dp.audit.", alnum, 40, 43},
	{"k8s-aws-v1.", wordByte, 40, 0},
	{"amzn.mws.", wordByte, 36, 36},
	{"oa2-cs.v1.", hex, 64, 64},
	{"v1.local.", keyByte, 40, 0}, // PASETO
	{"v2.local.", keyByte, 40, 0},
	{"v3.local.", keyByte, 40, 0},
	{"v4.local.", keyByte, 40, 0},
	{"v2.public.", keyByte, 60, 0},
	{"v4.public.", keyByte, 60, 0},
}

// starting are the prefixes that do not end in such a byte. They are looked for at the start of long words.
var starting = [...]known{
	{"AKIA", capital, 16, 16}, // AWS
	{"ASIA", capital, 16, 16},
	{"ABIA", capital, 16, 16},
	{"ACCA", capital, 16, 16},
	{"A3T", capital, 17, 17},
	{"ABSK", base64Byte, 100, 0},
	{"AIza", wordByte, 31, 35}, // Google
	{"AKCp", alnum, 60, 69},    // Artifactory
	{"cmVmd", alnum, 59, 59},
	{"ATATT3", tokenByte, 60, 0}, // Atlassian
	{"ATCTT3", tokenByte, 60, 0},
	{"ATBB", alnum, 32, 32},
	{"LTAI", alnum, 16, 20}, // Alibaba
	{"AQVN", wordByte, 35, 0},
	{"EZAK", alnum, 54, 54},
	{"EZTK", alnum, 54, 54},
	{"EAAA", wordByte, 22, 60}, // Square
	{"EAAM", alnum, 80, 0},     // Facebook
	{"EAAC", alnum, 80, 0},
	{"EAAG", alnum, 80, 0},
	{"SK", hex, 32, 32},        // Twilio
	{"dapi", hex, 32, 32},      // Databricks
	{"cio", alnum, 32, 32},     // crates.io
	{"4b1d", alnum, 38, 38},    // ClickHouse
	{"oy2", alnum, 43, 43},     // NuGet
	{"eyJrIjoi", alnum, 60, 0}, // Grafana, before it had prefixes
	{"GR1348941", wordByte, 20, 20},
}

// marks holds marked by the last two bytes of the prefix: the mark, and the byte before it.
var marks = func() (t [3][256][]known) {
	for _, p := range marked {
		n := len(p.prefix)
		m, before := markOf(p.prefix[n-1]), p.prefix[n-2]
		t[m][before] = append(t[m][before], p)
	}
	return t
}()

func markOf(c byte) int {
	switch c {
	case '-':
		return 0
	case '_':
		return 1
	default:
		return 2
	}
}

// starts holds starting by the first byte of the prefix.
var starts = func() (t [256][]known) {
	for _, p := range starting {
		t[p.prefix[0]] = append(t[p.prefix[0]], p)
	}
	return t
}()
