"""The most common words of languages: they tell languages apart, and say nothing of a subject."""

# ruff: noqa: RUF001 - letters of other scripts

from collections.abc import Mapping
from types import MappingProxyType

GERMAN = """
    aber als auf auch aus bei beim bis das dass dem den der des die dies diese diesem diesen dieser dieses doch
    durch ein eine einem einen einer eines er es für gegen gibt haben hat hatte ich ihm ihn ihr ihre ihrem ihren
    ihrer im ist ja jede jeden jeder kann kein keine keinen können mein meine meinem meinen meiner mich mir mit muss
    müssen nach nicht noch nur ob oder ohne sein seine sich sie sind soll sollte und uns unser unter vom von vor
    wann warum was wegen welche welchem welchen welcher welches wem wen wenn wer werden wie wieder wieviel wieso
    wird wo wofür woher wohin worden wurde wurden zu zum zur zwischen über wodurch womit darf dürfen lange oft viel
    viele
"""
SPANISH = """
    al como cómo con cual cuál cuáles cuando cuándo cuánta cuántas cuánto cuántos debe del desde donde dónde el ella
    ellos en entre era es esa ese eso esta está están este esto fue ha hace hacer hacia han hasta hay la las le les
    lo los más mi mis muy ni o para pero por porque puede pueden puedo qué que quien quién quiénes se según ser si
    sí sobre su sus también tiene tienen un una unas uno unos y ya
"""
FRENCH = """
    au aux avec ce cela ces cet cette ceux chez comment combien dans de depuis des dois doit doivent donc du elle
    elles en entre est et était eux faire fait faut il ils je la le les leur leurs lors lorsque ma mais mes mon ne
    nos notre nous on ont ou où par pas pendant peut peuvent pour pourquoi puis qu quand que quel quelle quelles
    quels qui quoi sa sans se sera ses si son sont sous sur ta tous tout toute toutes très un une vers vos votre
    vous y à être
"""
ITALIAN = """
    dell nell sull dall quell cosa ad agli ai al alla alle allo anche che chi ci come con cui da dai dal dalla dalle
    degli dei del della delle dello deve devo di dopo dove e ed fra gli ha hanno ho i il in io la le lo loro ma mi
    mio mia nei nel nella nelle non nostro o ogni per perché perche però più può possono posso prima qual quale
    quali quando quanta quante quanti quanto quello questa queste questi questo se senza si sia sono sua sue sui sul
    sulla sulle suo tra tutti tutto un una uno viene vengono è
"""
DUTCH = """
    aan als bij dan dat de deze die dit door een en er geen haar had hebben heeft hem het hij hoe hoelang hoeveel
    hun ik is je kan kunnen kun maar mag met mijn moet moeten na naar niet nog of om onder ons ook op over te tegen
    toch tot tussen uit van veel voor waar waarom waarmee wanneer wat welk welke wel werd wie wij wordt worden zal
    ze zich zij zijn zo zonder zou
"""
PORTUGUESE = """
    à ao aos as com como da das de deve do dos e é ela ele eles em entre era essa esse esta está estão este eu foi
    há isso isto já lhe mais mas me mesmo meu minha muito na nas não no nos nós o onde os ou para pela pelas pelo
    pelos pode podem por porque posso qual quais quando quanta quantas quanto quantos que quem se sem ser seu seus
    sobre sua suas são só também tem têm um uma umas uns
"""
RUSSIAN = """
    а без был была были было быть в вам вас весь во вот все всё всего вы где да для до его ее её если есть еще ещё
    же за и из или им их к как какая какие какого какой каком какую ко когда кого кто куда ли мне можно мой моя мы
    на над надо нам нас не него нее ней нет ни них но о об он она они оно от откуда по под почему при с сколько со
    так также такой там тебя тем то того тоже той только том ты у уже чего чем что чтобы эта эти это этого этой этом
    этот я должен должна должны нужно зачем
"""
ARABIC = """
    في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم ما ماذا متى أين اين كيف لماذا هل كم أي اي لا لم
    لن إن ان أن أو او ثم قد كان كانت يكون تكون بعد قبل عند كل بين حتى إذا اذا لكن غير منذ حول خلال يمكن يجب
"""
TURKISH = """
    acaba ama ancak bana bazı ben bir biz bu bunu bunun çok da daha de değil diye en gibi göre hangi hem her için
    ile ise kaç kadar ki kim kimin mi mı mu mü nasıl ne neden nedir nerede nereden nereye niçin o olan olarak olduğu
    olur onu onun sonra şu tarafından var ve veya ya yani yok zaman
"""
COMMON_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "de": frozenset(GERMAN.split()),
        "es": frozenset(SPANISH.split()),
        "fr": frozenset(FRENCH.split()),
        "it": frozenset(ITALIAN.split()),
        "nl": frozenset(DUTCH.split()),
        "pt": frozenset(PORTUGUESE.split()),
        "ru": frozenset(RUSSIAN.split()),
        "ar": frozenset(ARABIC.split()),
        "tr": frozenset(TURKISH.split()),
    }
)

# Some of these words are English ones too, or stand in code and names: they do not tell a language apart.
AMBIGUOUS = """
    al as com con da de del der di die dies do e el em en es et eu had her i il is la le les lo ma me mi min mit na
    ne no non o ob or os per plus sa se si sin son su sur ta to tu u um van via von y
"""

# What asks for something, in the scripts without spaces; single characters only if other words do not contain them.
QUESTION_WORDS = """
    为什么 為什麼 什么时候 什麼時候 什么样 什么 什麼 甚么 怎么样 怎么办 怎么 怎麼 怎样 怎樣 如何 哪里 哪裡 哪儿 哪些
    哪个 哪個 哪种 哪年 哪一 谁 誰 多少 多久 多长时间 几个 几天 是否 是不是 有没有 能不能 可不可以 请问 吗 嗎 呢
    なぜですか どうすれば どうやって どのように どのくらい どれくらい どのような いくつ ですか ますか でしょうか
    ください なぜ どうして どこで どこに どこ いつ だれ 何ですか とは何 何を 何が 何に 何の 何時 何歳 どの どれ
    どんな です ます 무엇입니까 무엇인가요 무엇을 무엇이 무엇 어떻게 어디에서 어디에 어디서 어디 언제까지 언제
    얼마나 얼마 누구 어떤 어느 입니까 인가요 합니까 하나요 나요 습니까 됩니까 되나요 있나요 ทำไม อย่างไร อะไร
    เมื่อไหร่ เมื่อไร เมื่อใด ที่ไหน ที่ใด ใคร เท่าไหร่ เท่าไร เท่าใด กี่ ไหม หรือไม่ บ้าง ยังไง คือ ไหน
"""
