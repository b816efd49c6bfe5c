"""The long tail: tens of thousands of made-up names of shops, streets and people.

Each language builds its names from a first, a middle and a last part. The order is shuffled once
and is the rank in Zipf's law, the same for every seed, so that logs of different seeds speak the
same language.
"""

from __future__ import annotations

from itertools import product

import numpy as np

_PARTS: dict[str, tuple[str, str, str]] = {
    "en": (
        """Ash Bram Cald Dun Elm Fen Green Hart Ivy Kes Lang Mar New Oak Pem Quin Rose Shel Thorn
        Under Vale Wether Yar Black Clare Dray Ever Fair Gran Hollow Inker Jas Kings Lyn Merri
        North Orch Pad Red Silver Tam Up Wood Brook Corn Dover East Farn Gold Hazel Isle Juni Kirk
        Lark Mill Nettle Otter Peter Rams Saxon Tilling Ulver Wren Alder Birch Crom Dart Ember
        Foxe""",
        "- er ing el en ring s mon al sen le an ter or",
        """ton ley ford by wick worth field well stead mere bridge brook combe dale gate grove ham
        hurst land low more mouth over port shaw side stone stow thorpe view water wood""",
    ),
    "es": (
        """Al Bar Cas Dol Esp Fer Gal Her Jar Lar Mal Nav Or Pal Qui Riv Sal Tor Val Zar Mont Luz
        Sol Ros""",
        "- an er in ad al av ol",
        "eja illa ado osa ano era ita ón ales iño uela ara ero ina edo aga",
    ),
    "fr": (
        """Beau Belle Chant Clair Cour Dor Fleur Font Gris Haut Lam Mar Mont Neu Per Roche Saint
        Val Vau Ver Bois Cler""",
        "- e er in ne mar le",
        "ville mont court fort bert lier ette eau oise ay ac elle in on erie ières val",
    ),
    "de": (
        """Alt Berg Birk Brun Eich Eis Feld Gold Grün Hagen Hein Kirch König Lind Mühl Neu Ober
        Rosen Schön Stein Tann Wald Weid Wolf""",
        "- en er el s in ers",
        "bach berg brück burg dorf feld furt hain hausen heim hof horst au moor rode stedt tal",
    ),
    "pt": (
        """Al Ara Bel Car Cor Fer Gua Ita Jac Lim Mar Mor Oli Par Pir San Tab Val Ver Vil Rib
        Camp""",
        "- an ar in er al ib or",
        "aba eira inho inha osa uera ana edo aré ão eiro ema oca uba ado ense",
    ),
    "tr": (
        """Ak Altın Bey Çam Dağ Ece Gök Gül Has Kara Kız Mavi Ok Pamuk Sarı Su Taş Yeşil Yıl Deniz
        Demir Ay""",
        "- lı en a in ar el",
        "köy tepe pınar dere kaya oğlu ova su han can dağ bahçe burun taş çay ören",
    ),
    "ru": (
        """Бел Бор Вол Гор Дуб Зар Ив Кам Крас Лес Мал Ник Ор Пет Рос Сол Тих Уг Фон Чер Юж
        Яс""",
        "- ов ин ен ан ар ол",
        "ский ово ино инка ица ники ка ня оры енка ушка ава ёво ель онка",
    ),
    "ar": (
        "ال بو دار بيت باب عين",
        "نور بحر قمر ورد نجم فجر سلم كرم حسن زهر شرق نهر جبل رمل نخل",
        "- ية ان ين ات ي اوي ون ة",
    ),
    "hi": (
        "राम श्याम गंगा मोहन शिव कमल चंद्र सूर्य आनंद राज लक्ष्मी विजय प्रेम अमर",
        "- न ल प र",
        "नगर पुर बाग गढ़ वाला दास लाल भवन सागर कुंज",
    ),
    "zh": (
        "春 和 永 安 福 金 玉 明 长 新 东 南 西 北 云 龙 花 青 海 天",
        "风 光 泰 兴 华 平 江 山 月 林 桥 园 门 湖 石",
        "- 里 记 坊 居 阁 楼 轩 斋 堂",
    ),
    "ja": (
        "青 赤 白 大 小 中 上 高 松 竹 梅 桜 花 月 星 川 森 石 北 南",
        "山 田 木 原 島 野 沢 井 谷 丘 橋 浜",
        "- 屋 堂 亭 庵 軒 荘 町",
    ),
    "ko": (
        "하 가 나 다 라 마 바 사 아 자 은 해 달 별 온 봄",
        "늘 람 루 솔 온 빛 울 림 연 들 결",
        "- 동 집 당 네 길 마루 터 방",
    ),
}


def rare_names(language: str) -> list[str]:
    """All names of `language`, each once, the frequent first."""
    first, middle, last = (
        [part.replace("-", "") for part in parts.split()] for parts in _PARTS[language]
    )
    names = list(dict.fromkeys("".join(parts) for parts in product(first, middle, last)))
    order = np.random.Generator(np.random.PCG64(20260301)).permutation(len(names))
    return [names[row] for row in order]
