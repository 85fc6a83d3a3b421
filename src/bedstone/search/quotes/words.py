"""Words that carry a fact: negations, exceptions, polarity and units; and words that scans take for one another."""

# ruff: noqa: RUF001 - words of other scripts


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


NEGATIONS = _words(
    "not no never none neither nor without cannot nothing hardly scarcely barely non nowhere nicht kein keine",
    "keinen keinem keiner keines nie niemals ohne weder nichts niemand kaum ne pas jamais sans aucun aucune ni rien",
    "ningún ninguno ninguna nunca sin jamás tampoco senza né nessun nessuno nessuna não nem sem nenhum nenhuma",
    "niet geen nooit zonder inte ikke ej ingen inget aldrig aldri utan uten uden nigdy bez brak žádný není",
    "nikdy ei eivät ilman nélkül nu fără değil yok hiç tidak bukan tanpa không chưa не нет ни без никогда нельзя ні",
    "немає ніколи δεν δε μη μην όχι χωρίς ποτέ لا ليس ليست لم لن غير بدون ما לא אין בלי אל नहीं न मत बिना ไม่ 안 못",
    "nobody",  # prose: ok
)
# After the last word of a quotation these turn it round: "the contract renews | not".
TRAILING_NEGATIONS = _words("only nur seulement not nicht pas niet inte ikke ej jamais plus guère değil δεν")
# Between a negation and what it negates: "must not be opened", "no longer supported".
LINKING = _words(
    "be been being to a an the any yet ever have has had longer sein werden zu der die das être de la le",
)
RESTRICTIONS = _words("only nur seulement sólo solo soltanto только")
# Scripts without spaces: what stands directly before, and directly behind.
NEGATIVE_PREFIXES = (
    *"不未无無非勿莫没沒别別",
    *("禁止", "不得", "不能", "不可", "不要", "不准", "不会", "不是"),
    *("不应", "并非", "没有", "沒有", "无法", "無法", "尚未", "ไม่"),
)
NEGATIVE_ENDINGS = (
    *("ない", "なかった", "なく", "なけ", "ません", "ず", "ぬ", "まい", "できない", "できません"),
    *("禁止", "不可", "않", "없", "못하", "아니", "아닙", "말"),
)
EXCEPTIONS = _words(
    "unless except excluding only if when until but however provided although though while whereas excepting save",
    "außer nur wenn sofern falls aber jedoch soweit solange bis sondern während obwohl ausgenommen sauf seulement",
    "si mais hormis excepté lorsque quand tandis salvo excepto solo sólo pero cuando mientras eccetto tranne",
    "soltanto ma quando mentre exceto somente mas behalve alleen maar tenzij utom endast men kun undtagen кроме",
    "если только но когда пока хотя крім якщо лише але chyba oprócz tylko ale jeśli إلا إذا لكن فقط",
)
EXCEPTION_MARKS = ("但", "除", "仅", "僅", "只", "如果", "若", "ただし", "除く", "のみ", "場合", "다만", "제외", "경우")
# Joining words: what stands behind them may have another subject.
COORDINATORS = _words(
    "and or but while whereas nor then which who whose whom und et ou y o e och og en и или а و",
    "oder",  # codespell:ignore
)
# One of these is never a misread word, and never has lost a letter: it would be another fact.
POLARITY = _words(
    "before after above below under over increase increased increases increasing decrease decreased decreases",
    "decreasing include included includes including exclude excluded excludes excluding minimum maximum minimal",
    "maximal always often rarely seldom sometimes usually almost every everyone someone anyone either both least",
    "lower higher fewer greater smaller larger longer shorter earlier later first second third fourth fifth former",
    "latter inside outside inner outer upper internal external import export allow allowed allows forbid forbidden",
    "prohibited permit permitted require required requires optional mandatory legal illegal valid invalid enable",
    "enabled disable disabled accept accepted reject rejected approve approved refuse refused grant granted deny",
    "denied should would could might must may can will all any some each unable able cannot positive negative",
    "active inactive accident incident against within beyond exceed exceeds exceeded left right north south eastern",
    "western northern southern open opened close closed start started stop stopped begin ends major minor hourly",
    "daily weekly monthly yearly annually once twice double triple half quarter hundred thousand million billion",
    "trillion dozen monday tuesday wednesday thursday friday saturday sunday january february march april june july",
    "august september october november december spring summer autumn winter morning evening noon midnight seconds",
    "minutes hours weeks months years minute percent degrees celsius fahrenheit kelvin meter meters metre metres",
    "gram grams litre litres liter liters euros dollars pounds francs buyer seller tenant landlord lender borrower",
    "licensor licensee lessor lessee employer employee mortgagor mortgagee debtor creditor assignor assignee adult",
    "adults child children mother father husband wife vorher nachher immer selten mindestens höchstens erlaubt",
    "verboten zulässig unzulässig inklusive exklusive mehr weniger größer kleiner montag dienstag mittwoch",
    "donnerstag freitag samstag sonntag märz avant après toujours parfois moins autorisé interdit lundi mardi",
    "mercredi jeudi vendredi samedi dimanche janvier février avril juillet septembre octobre novembre décembre",
    "antes después siempre menos máximo mínimo permitido prohibido prima dopo sempre meno massimo minimo больше",
    "меньше всегда до после максимум минимум",
    "januar februar juni juli oktober dezember",  # codespell:ignore
    "shall",  # prose: ok
)
CRITICAL = NEGATIONS | EXCEPTIONS | POLARITY
# In front of a word, joined or not, these may turn it round: "in effective", "un able"; and behind one: "use less".
TURNING_WORDS = _words(
    "in no not a an under over out up on off counter for to nor or be post extra super miss ohne mit aus ein auf an",
)
TURNING_PREFIXES = _words(
    "im il ir un non dis de anti ab sub hyper hypo inter intra pre re ent ver zer",
    "mis",  # codespell:ignore
)
TURNING_ENDINGS = _words("less free out off up down over ever on in able")
# Words that a turning word only joins if a space is lost, as "to which" in a scan.
FUNCTION_WORDS = _words(
    "the a an this that these those its their his her your our it is are was were be been of to in on for and by",
    "with as at from which what when who whom they there them than then such each all any will would should has had",
    "have you der die das den dem des ein eine einen einem einer welche welcher welches le la les une du el los",
)
UNITS = _words(
    "mg g kg µg μg mcg ml cl dl l mm cm dm m km ms s sec min h hr hrs v mv kv ma w kw mw gw kwh mwh bar mbar psi pa",
    "kpa mpa hpa hz khz mhz ghz kb mb gb tb kib mib gib tib c f k t nm rpm db lux lm mol mmol iu ie eur usd gbp chf",
    "million millions billion billions thousand hundred trillion dozen mio mrd tsd millionen milliarden tausend",
    "milliards mille millones mil milioni миллионов тысяч млн млрд тыс percent prozent pourcent",
    "万 億 亿 千 百 元 円 年 月 日 时 時 分 秒 個 个 人 名 만 억 원 년 월 일",
)
# The same letters, another unit: milliwatt and megawatt, bit and byte.
CASED_UNITS = _words("m mhz mw mwh mb mbit mbps mv mva ma mpa mg mm mol ms s k g b kb gb tb p pb t n hz v w l")
# Words that one misread, lost or doubled letter turns into each other, each pair a fact apart.
CONFUSABLE = _words(
    "academics academies addiction addition allusion ambitions ambitious applies apples asserts assets auction",
    "action beitragen betragen beiträgt beträgt believers believes bindings blindings breaking braking brought",
    "bought campaign champaign cannons canons casing casings easing cautions cautious checks cheeks clashed dashed",
    "clauses causes cleansing cleaning clement element elements clements clipped dipped clocks docks closes doses",
    "closing dosing closed dosed closest closet clutch dutch commandos commands competed completed competes",
    "completes competing completing contacted contracted contacting contracting contacts contracts contact contract",
    "contingent continent conserved converse copying coping counties countries countess countless county country",
    "creates crates cremated created deceased decreased defection detection deleted depleted deprivation derivation",
    "deprived derived desert dessert deserted desserts discuss economics economies emission omission eternal",
    "external excerpt except excited existed exited exciting existing exiting explorers explores factional",
    "fractional fraction faction failing falling filing failed fallen faculty faulty filed filled filling films",
    "flights fights fleeing fleeting founded funded founding funding freezing freeing freight fright friction",
    "fiction garner gamer grooves groves handed handled handing handling hardness harness heated hearted heating",
    "hating heritage hermitage hoping hopping immorality immortality immoral immortal incline inline indicated",
    "indicted induced inducted inducing inducting infections infectious inspect insect interstate intestate landed",
    "lauded learned leaned learning leaning lighting lightning linking lining liking loses losses losing marking",
    "making markers makers married marred mediation medication meditation medical medial modern modem months mouths",
    "morality mortality mourning morning neural neutral noting nothing observers observes officers offices",
    "ordinance ordnance organizers organizes overhead overheard parted patent patient patents patients paving",
    "paying playing phases phrases placing pacing plague plaque planned planing planning planets plants pleasant",
    "peasant poison poisson portion potion posting posing preservation perseveration prescribed prescribe prices",
    "princes princess producers produces promoters promotes providers provides publishers publishes radial radical",
    "raising rising rations ratios rating ratting receivers receives refuge refugee refused reused reigning",
    "resigning relics relies relied replied replies religions religious remainder reminder researchers researches",
    "reserved reversed resigned reigned salvage savage saving saying scaled sealed scaling sealing scared scarred",
    "scraped scrapped seating settling setting severity seventy shipped sipped sighted sighed simulate stimulate",
    "simulated stimulated simulation stimulation simulating stimulating smoothing soothing spending sending",
    "splitting spitting stared started stated starting stating staring starred startling statue stature statute",
    "statues statutes status steaming streaming stories stores stones strained stained strains stains striped",
    "stripped suppliers supplies suspicions suspicious tested tasted tilled tiled thrusting trusting through",
    "rooster roster finish finnish dragons dragoons waiter peeking though thorough unionized villagers villages",
    "waited wanted wining winning writing written stem stern stems sterns darn",
    "discus planed",  # codespell:ignore
)
