// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/storage/fulltext"
)

// unspacedTexts are memories of teams that write without spaces. Of a query, the number is that of the memory that answers it.
var unspacedTexts = map[string]struct {
	memories []string
	queries  []string
	answers  []int
	absent   []string
}{
	"Chinese": {
		memories: []string{
			"生产环境的数据库每天凌晨三点备份到对象存储",
			"用户喜欢简短的回答，不要使用表格",
			"发布之前必须先在测试环境里跑完所有的集成测试",
			"我家的猫叫小白，今年三岁",
			"公司的报销流程需要部门经理审批",
			"周报在每个星期五下午发送给张经理",
			"服务器的密码保存在密码管理器里，不要写进代码",
			"前端使用的框架是我们自己维护的，不要升级依赖",
			"用户对花生过敏，推荐餐厅的时候要注意",
			"日志保留九十天，之后会自动删除",
			"客户希望发票上写公司的英文名称",
			"北京办公室的会议室需要提前一天预订",
		},
		queries: []string{
			"数据库是什么时候备份的？", "回答的时候可以用表格吗？", "怎么发布新的版本？", "猫多大了？", "请问怎么报销出差的费用？", "这个星期的周报要发给谁？",
			"我忘记了服务器的密码怎么办", "可以把前端的依赖升级一下吗", "帮我推荐一家餐厅吧", "上个月的日志还在不在？", "发票应该怎么写？", "明天在北京开会，帮我订一下会议室",
		},
		answers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		absent:  []string{"咖啡", "天气预报"},
	},
	"Japanese": {
		memories: []string{
			"本番サーバーの再起動は必ず夜中に行うこと",
			"データベースのバックアップは毎朝四時に取っています",
			"ユーザーは短い返事を好みます。表は使わないでください",
			"うちの犬の名前はポチで、今年で五歳になります",
			"経費の精算は毎月二十日までに申請してください",
			"リリースの前には必ずステージングでテストをしてください",
			"会議室の予約はカレンダーからお願いします",
			"パスワードはコードに書かないでください",
			"田中さんは卵のアレルギーがあるので、お店を選ぶときは気をつけてください",
			"ログは九十日で自動的に削除されます",
			"請求書の宛名は英語の社名でお願いします",
			"雨の日は在宅で働いてもいいことになっています",
		},
		queries: []string{
			"サーバーはいつ再起動すればいいですか", "バックアップは何時ですか", "返事に表を使ってもいいですか", "犬は何歳ですか", "経費はどうやって申請すればいいですか",
			"明日リリースしてもいいですか", "会議室はどうやって予約すればいいですか", "パスワードはどこに書けばいいですか", "田中さんと食べに行くお店を選んでください", "先月のログは残っていますか",
			"請求書を書いてください", "雨が降っていますが、どうすればいいですか",
		},
		answers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		absent:  []string{"コーヒー", "ミーティング", "マーケット", "天気予報"},
	},
	"Thai": {
		memories: []string{
			"ฐานข้อมูลของระบบจริงสำรองทุกวันตอนตีสาม",
			"ผู้ใช้ชอบคำตอบสั้นๆและไม่ต้องการตาราง",
			"ก่อนปล่อยรุ่นใหม่ต้องทดสอบให้ครบทุกครั้ง",
			"แมวที่บ้านชื่อมะลิอายุสามปี",
			"การเบิกค่าเดินทางต้องให้หัวหน้าอนุมัติก่อน",
			"ส่งรายงานประจำสัปดาห์ให้ผู้จัดการทุกวันศุกร์",
			"ห้ามเขียนรหัสผ่านลงในโค้ด",
			"ผู้ใช้แพ้ถั่วลิสงต้องระวังเวลาแนะนำร้านอาหาร",
			"บันทึกการทำงานเก็บไว้เก้าสิบวันแล้วลบอัตโนมัติ",
			"ใบแจ้งหนี้ต้องใช้ชื่อบริษัทเป็นภาษาอังกฤษ",
			"ห้องประชุมต้องจองล่วงหน้าหนึ่งวัน",
			"วันที่ฝนตกทำงานจากที่บ้านได้",
		},
		queries: []string{
			"ฐานข้อมูลสำรองเมื่อไหร่", "ใช้ตารางในคำตอบได้ไหม", "จะปล่อยรุ่นใหม่ต้องทำอย่างไร", "แมวอายุเท่าไหร่แล้ว", "จะเบิกค่าเดินทางได้อย่างไร", "รายงานต้องส่งให้ใคร",
			"ควรเก็บรหัสผ่านไว้ที่ไหน", "ช่วยแนะนำร้านอาหารหน่อย", "บันทึกของเดือนที่แล้วยังอยู่ไหม", "ช่วยเขียนใบแจ้งหนี้ให้หน่อย", "พรุ่งนี้อยากใช้ห้องประชุม", "วันนี้ฝนตกหนักมาก",
		},
		answers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		absent:  []string{"กาแฟ", "นาฬิกา", "โทรศัพท์"},
	},
}

// In languages that are written without spaces a memory is found by its words: the one that answers a question is the first, and a
// word that no memory has finds none.
func TestUnspacedLanguages(t *testing.T) {
	for language, c := range unspacedTexts {
		t.Run(language, func(t *testing.T) {
			e, x := open(t)
			for i, text := range c.memories {
				replace(t, e, x, nil, &fulltext.Document{Space: "ns", Name: fmt.Sprint(i), Rank: uint64(i), Text: text})
			}
			first := 0
			for i, query := range c.queries {
				found := strings.Fields(find(t, x, fulltext.Query{Text: query}))
				if len(found) > 0 && found[0] == fmt.Sprint(c.answers[i]) {
					first++
					continue
				}
				t.Errorf("%s: found %v, want %d first", query, found, c.answers[i])
			}
			for _, query := range c.absent {
				if found := find(t, x, fulltext.Query{Text: query}); found != "" {
					t.Errorf("%s: found %s, although no memory has the word", query, found)
				}
			}
			t.Logf("%d of %d answers are first", first, len(c.queries))
		})
	}
}

// The words of a long prompt count that some document has, wherever in the prompt they are.
func TestLongUnspacedPrompt(t *testing.T) {
	e, x := open(t)
	for i, text := range unspacedTexts["Chinese"].memories {
		replace(t, e, x, nil, &fulltext.Document{Space: "ns", Name: fmt.Sprint(i), Rank: uint64(i), Text: text})
	}
	var prompt strings.Builder
	for i := range 300 {
		prompt.WriteRune(rune(0x8000 + i)) // letters that no memory has
	}
	if got := find(t, x, fulltext.Query{Text: prompt.String() + "推荐一家餐厅"}); got != "8" {
		t.Errorf("found %q, want 8", got)
	}
}
