"""Small words of languages that the city speaks: for those who count what is talked about.

None of them is a word that a subscription of the city asks for.
"""

from __future__ import annotations

_BY_LANGUAGE = {
    "english": (
        "a about all an and are as at be bring but by does else everyone for from get go goes"
        " going got half has have haha hey honestly i in is it just left me more my no nobody"
        " not now of ok on one only or out past psa right s says see share since so still take"
        " thanks than that the there they this to ugh under until up update very was way went"
        " what who with you your"
    ),
    "portuguese": (
        "a ai aqui até com da das de depois do dos e é ela ele em essa está eu foi gente já"
        " mais mas na não nas no nos o obrigado os para pelo por pra que quem se só também tem"
        " um uma às"
    ),
    "spanish": (
        "al alguien algo con de del desde donde dos el en es ese esta está este gracias hay"
        " hasta la las lo los más me mi muy no para pero por que quien se si sin también todo un"
        " una vale y ya"
    ),
    "french": (
        "à au aux avec c ça cette chez d dans de des dites du elle en est et il j je l la le"
        " les merci mais ne on ou par pas plus pour qu que qui sans si sur tout très un une y"
    ),
    "german": (
        "ab am an auf aus bei bis bitte da das dem den der des die ein eine einen er es für im"
        " in ist mit nach nicht noch nur oder schon seit sich sie so um und von vor war was wer"
        " wie zu zum zur"
    ),
    "numbers": " ".join(map(str, range(61))),
}

SMALL_WORDS = sorted({word for words in _BY_LANGUAGE.values() for word in words.split()})
