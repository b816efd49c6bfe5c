"""The stories of the hour: scripted incidents during which one place bursts with one topic.

Begin and end are fractions of the hour. `share` is the part of the whole world's posts that an
incident draws at its height; it rises and falls as half a sine. `to` makes it travel, as a storm
crosses a city.
"""

from __future__ import annotations

from typing import NamedTuple


class Incident(NamedTuple):
    spot: str  # a hot spot, or a city
    language: str
    topic: str
    begins: float
    ends: float
    share: float
    spread_m: float
    sayings: tuple[str, ...]
    to: tuple[float, float] | None = None


INCIDENTS = (
    Incident(
        "Madison Square Garden",
        "en",
        "concerts",
        0.55,
        0.80,
        0.05,
        350,
        (
            "What a concert! {name} played the {word} twice",
            "That encore. I have no voice left. {spot} forever",
            "Concert over, {number} thousand people and one exit at {spot}",
            "Still humming the last song outside {spot}",
            "No taxi anywhere after the concert, walking to {name} Street",
            "The {word} on the encore was unreal",
        ),
    ),
    Incident(
        "London",
        "en",
        "flooding",
        0.15,
        0.70,
        0.06,
        3500,
        (
            "Flooding on {name} Road, cars stuck, stay away",
            "Flood warning on my phone for {city}, and now hail",
            "Street is a river near {name}, {word} everywhere",
            "Thunder right above {name} House, lights flickering",
            "{name} underpass is flooded, {number} cm and rising",
            "Storm took half the roof of the {name} Arms",
            "Basement flooded, does anyone near {name} have a pump?",
        ),
        (0.10, 51.53),
    ),
    Incident(
        "Taksim",
        "tr",
        "transit",
        0.30,
        0.52,
        0.04,
        900,
        (
            "M2 metro durdu, {spot} istasyonu kapalı",
            "Metro arıza vermiş, {number} dakikadır tüneldeyiz",
            "{spot} çok kalabalık, metro yok, {word} bekliyoruz",
            "Metro durdu, kahve içmeye {name} kafeye geldik",
            "Yürüyerek {name} sokak, metro arıza yüzünden",
        ),
    ),
    Incident(
        "Maracanã",
        "pt",
        "football",
        0.62,
        0.82,
        0.045,
        450,
        (
            "GOOOL! {name} de cabeça, {spot} enlouqueceu",
            "É gol! É gol! Não acredito!",
            "Gol aos {number} minutos e a torcida não para de cantar",
            "Que jogo, que {word}, que {word}!",
            "{name} pegou o pênalti, herói do {spot}",
        ),
    ),
    Incident(
        "São Paulo",
        "pt",
        "power cuts",
        0.40,
        0.62,
        0.04,
        5000,
        (
            "Apagão na rua {name}, tudo escuro",
            "Falta luz no bairro inteiro, só {word} aqui",
            "Sem luz há {number} minutos, {name} também?",
            "Apagão em {city}: semáforo desligado na {name}",
            "A luz voltou! Não, foi embora de novo",
        ),
    ),
    Incident(
        "Tokyo",
        "ja",
        "transit",
        0.04,
        0.22,
        0.05,
        6000,
        (
            "山手線 運転見合わせ 、{name} 駅 で 停車 中",
            "山手線 が {number} 分 の 遅れ 、駅 が 大 混雑",
            "今 、 揺れた ？ 電車 が 止まった",
            "{name} 駅 、山手線 の 遅れ で 人 が あふれている",
            "振替 の バス も 満員 、{word} 待ち",
        ),
    ),
    Incident(
        "Tiergarten",
        "de",
        "pets",
        0.08,
        0.92,
        0.006,
        1500,
        (
            "Hund entlaufen am {spot}, heißt Mila, sehr scheu",
            "Mila gesehen! Brauner Hund, rennt Richtung {name}straße",
            "Suchen immer noch Hund Mila, vermisst seit heute Mittag, {spot}",
            "Wer am {spot} ist: Hund vermisst, bitte nicht rufen, nur melden",
        ),
    ),
    Incident(
        "Kreuzberg",
        "en",
        "pets",
        0.20,
        0.95,
        0.004,
        1800,
        (
            "Lost dog Mila was seen near {name} Street, please look",
            "Missing dog in {city}: brown, shy, called Mila",
            "Think I saw the lost dog by {spot}, running towards the canal",
        ),
    ),
    Incident(
        "Balogun Market",
        "en",
        "fire",
        0.25,
        0.55,
        0.03,
        900,
        (
            "Smoke over {spot}, fire service is here, nobody hurt",
            "Fire at {name} Plaza, traders saving the {word} first",
            "{number} fire trucks at {spot}, whole street helping with water",
            "Fire is out at {spot}, thank God, just smoke now",
            "Black smoke all the way to {name} Street",
        ),
    ),
    Incident(
        "Wankhede Stadium",
        "hi",
        "cricket",
        0.70,
        0.98,
        0.035,
        500,
        (
            "छक्का! {name} ने मैच जिता दिया, {spot} झूम उठा",
            "आखिरी ओवर, {number} रन, दिल की धड़कन तेज",
            "जीत गए! {spot} में {word} {word} की आवाज",
            "क्या मैच था, {name} भाई जिंदाबाद",
        ),
    ),
    Incident(
        "Zócalo",
        "es",
        "street food",
        0.05,
        0.95,
        0.012,
        400,
        (
            "Feria de comida en {spot}: tacos de {name}, {word} y música",
            "Los tacos de {name} ya casi se acaban, corran a {spot}",
            "{number} puestos en {spot} y todos huelen increíble",
            "Fila larguísima por los {word} de {name}, vale cada minuto",
        ),
    ),
    Incident(
        "République",
        "fr",
        "concerts",
        0.45,
        0.90,
        0.015,
        400,
        (
            "Concert surprise place de la {spot}, venez !",
            "{name} joue gratuitement à {spot}, tout le monde danse",
            "{number} musiciens sur un camion, {word} et pluie, magique",
            "Plus un bruit, puis le rappel : {spot} en larmes",
        ),
    ),
    Incident(
        "Williamsburg",
        "en",
        "concerts",
        0.02,
        0.98,
        0.008,
        1200,
        (
            "Jazz on the river, {name} on trumpet, come down to {spot}",
            "{name} on trumpet, the river behind, jazz until {hour}",
            "Free jazz, {name} brought a trumpet, the river listens",
            "A boat on the river answers the trumpet, jazz at its best",
            "Jazz, a trumpet, the river and {number} happy dogs",
            "{name} Quartet plays jazz on the pier, free, until {hour}",
            "Brass band at {spot}, {number} people dancing to jazz and {word}",
            "Jazz picnic on the river bank: {word}, {word}, lemonade",
        ),
    ),
)
