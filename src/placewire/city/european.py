"""Spanish, French, German, Portuguese, Turkish and Russian: fewer topics, said in fewer ways."""

from __future__ import annotations

from placewire.city.vocabulary import Language, Topic

# fmt: off
SPANISH = Language("es", {
    "coffee": Topic(6, "☕ 🥐", """
        café cortado espresso leche churros medialuna tostada azúcar chocolate capuchino barista
        molido granos descafeinado pastel terraza desayuno""", (
        "Café gratis en {name} hasta las {hour}, {spot}",
        "El mejor {word} de {city} está en {name}",
        "Un {word}, un {word} y un buen libro en {spot}",
        "¿Quién se toma un {word} conmigo cerca de {spot}?")),
    "street food": Topic(7, "🌮 🌶️ 😋", """
        tacos empanadas arepas tamales quesadilla elote choripán ceviche salsa guacamole
        tortilla pozole milanesa asado pupusas helado churrasco""", (
        "Tacos de {name} en {spot}, hay fila pero vale la pena",
        "Hoy {word} y {word} en el puesto de {name}",
        "¿Dónde hay buenos {word} por {spot}?",
        "Dos {word} por {number} pesos en {name}, tacos también")),
    "traffic": Topic(5, "🚗 🚦", """
        tráfico choque semáforo avenida puente autopista obras túnel desvío camión bache
        embotellamiento carril glorieta estacionamiento taxi""", (
        "Choque en la avenida {name}, {number} minutos parados",
        "Mucho tráfico por {spot}, busquen otra ruta",
        "Obras en la calle {name}: {word} cerrado hasta las {hour}")),
    "transit": Topic(5, "🚇 🚌", """
        metro retraso andén tren línea autobús parada boleto huelga vagón estación transbordo
        conductor tranvía horario puertas""", (
        "Retraso en la línea {few} del metro, andén lleno en {spot}",
        "El {word} no pasa por {name} desde hace {number} minutos",
        "Metro detenido en {spot}, nadie dice nada")),
    "football": Topic(6, "⚽ 🙌", """
        gol partido árbitro penal portero hincha estadio clásico cancha delantero liga campeón
        tarjeta córner camiseta banderas""", (
        "¡Gol! Todo {spot} está gritando",
        "Ese {word} no era, el árbitro está ciego",
        "Falta uno para el partido en {name} a las {hour}")),
    "weather": Topic(4, "🌧️ ☀️", """
        lluvia sol calor viento tormenta frío nubes paraguas granizo niebla relámpago arcoíris
        humedad atardecer""", (
        "Qué {word} en {city} hoy",
        "Empieza la {word} en {spot}, saquen el paraguas",
        "{number} grados y sin aire en la calle {name}")),
    "jobs": Topic(3, "💼", """
        trabajo empleo entrevista mesero turno sueldo chofer cocinero oficina contrato enfermera
        vacante diseñadora""", (
        "{name} busca {word} cerca de {spot}, empieza el lunes",
        "Busco trabajo de {word} en {city}, ¿algún dato?")),
    "pets": Topic(3, "🐶 🐱", """
        perro gato cachorro correa loro veterinario collar gatito conejo patitas galleta
        adopción""", (
        "Se perdió un perro cerca de {spot}, se llama {name}",
        "Encontré un {word} en la calle {name}, sin collar")),
}, ("Oigan, ", "Ojo: ", "Uf, ", "Aviso: ", "La verdad, "),
   ("!", ", gracias", " jaja", ". ¡Vamos!", "...", " otra vez", ", por favor compartan"),
   "hoy gratis cerca cerrado calle mejor minutos estación noche plaza busco nuevo")

FRENCH = Language("fr", {
    "coffee": Topic(6, "☕ 🥐", """
        café croissant espresso crème noisette terrasse tartine chocolat thé barista brioche
        sucre comptoir serveur brunch macaron""", (
        "Café offert chez {name} jusqu'à {hour} h, {spot}",
        "Le meilleur {word} de {city}, c'est chez {name}",
        "Un {word} en terrasse à {spot}, la vie est belle")),
    "transit": Topic(6, "🚇 😩", """
        métro retard quai train grève ligne rer tramway bus incident rame billet correspondance
        contrôleur annonce portes""", (
        "Retard sur la ligne {few}, quai bondé à {spot}",
        "Encore une {word} arrêtée à {name}, {number} minutes",
        "Plus de métro à {spot}, tout le monde à pied")),
    "jobs": Topic(5, "💼 🤝", """
        emploi stage serveur cuisinier entretien contrat vendeur infirmière salaire livreur
        alternance bureau développeur""", (
        "La brasserie {name} recrute un {word}, emploi tout de suite",
        "Cherche emploi de {word} à {city}, merci de partager",
        "Entretien à {hour} h chez {name}, croisez les doigts")),
    "concerts": Topic(4, "🎶 🎤", """
        concert scène guitare chanteuse rappel fanfare billets jazz chorale batterie festival
        bal""", (
        "Concert gratuit à {spot} ce soir, {name} à {hour} h",
        "Ce solo de {word} chez {name}, quelle merveille")),
    "markets": Topic(4, "🧀 🥖", """
        marché fromage pain tomates fleurs miel pommes fraises olives brocante champignons
        poisson huîtres vin""", (
        "Marché à {spot} : {word}, {word} et soleil",
        "Le {word} de chez {name} vaut le détour")),
    "weather": Topic(4, "🌧️ ☀️", """
        pluie soleil vent orage nuages froid brouillard neige parapluie canicule éclair grêle""", (
        "De la {word} sur {city}, encore",
        "{number} degrés à {spot} et du {word}")),
    "housing": Topic(3, "🏠 🔑", """
        appartement loyer chambre studio balcon colocation bail cave ascenseur chauffage voisin
        cuisine""", (
        "Chambre à louer rue {name}, {number} minutes de {spot}",
        "{number} personnes pour visiter un {word} rue {name}")),
    "pets": Topic(2, "🐶 🐱", """
        chien chat chiot laisse perroquet vétérinaire lapin collier chaton moustaches""", (
        "Chien perdu près de {spot}, il s'appelle {name}",
        "Un {word} dort dans la vitrine de {name}")),
}, ("Bon, ", "Attention : ", "Franchement, ", "Info : ", "Dites, "),
   (" !", ", merci", " mdr", "...", ", à tout de suite", " encore une fois"),
   "gratuit ce soir près ouvert fermé rue minutes cherche perdu meilleur place gare")

GERMAN = Language("de", {
    "coffee": Topic(6, "☕ 🍰", """
        kaffee kuchen espresso brötchen milchkaffee hafermilch brezel tee röster sahne zimt
        franzbrötchen bohnen tasse strudel""", (
        "Kaffee umsonst bei {name} bis {hour} Uhr, {spot}",
        "Der beste {word} in {city}: Café {name}",
        "{number} Leute warten bei {name} auf {word}")),
    "transit": Topic(6, "🚇 😩", """
        bahn verspätung gleis zug ausfall tram bus streik ansage u6 ring fahrkarte türen weiche
        schaffner ersatzverkehr""", (
        "S-Bahn am {spot} mit {number} Minuten Verspätung",
        "{Word} an der {name}straße, nichts geht mehr",
        "Zug fällt aus, Grund: {word}. Danke für nichts")),
    "pets": Topic(4, "🐶 🐾", """
        hund katze leine welpe dackel kater halsband papagei tierarzt hase pfoten hamster igel""", (
        "Hund entlaufen bei {spot}, hört auf {name}",
        "Ein {word} fährt allein U-Bahn, ganz entspannt",
        "Katze zugelaufen in der {name}straße, wer vermisst sie?")),
    "weather": Topic(4, "🌧️ ☀️", """
        regen sonne wind schnee gewitter nebel kälte wolken hagel schirm hitze glatteis sturm
        regenbogen""", (
        "{Word} über {city}, Schirm nicht vergessen",
        "Erst {word}, dann {word}, typisch {city}")),
    "markets": Topic(3, "🥖 🧀", """
        flohmarkt käse brot blumen honig äpfel spargel pilze trödel lampe schallplatten
        marmelade kartoffeln""", (
        "Flohmarkt am {spot}: {word} für {number} Euro",
        "Bei {name} gibt es wieder {word}, schnell hin")),
    "housing": Topic(4, "🏠 📦", """
        wohnung miete zimmer balkon kaution vermieter keller heizung wg umzug küche nebenkosten
        schlüssel""", (
        "Suche {word} in {city}, bitte teilen",
        "{number} Leute bei der Besichtigung in der {name}straße",
        "Zu verschenken, {name}straße {number}: {word}, Stühle, Bücher")),
    "football": Topic(4, "⚽ 📣", """
        tor spiel elfmeter schiri fans abseits derby stadion torwart pokal trainer ecke schal
        kurve""", (
        "TOR! Ganz {spot} springt",
        "Nie im Leben {word}, Schiri ans Telefon",
        "Uns fehlt ein Torwart, {name}platz um {hour}")),
    "cycling": Topic(3, "🚲 🔧", """
        fahrrad radweg helm reifen lastenrad klingel platten kette licht bremse schloss
        luftpumpe""", (
        "Platten an der {name}brücke, hat wer eine Luftpumpe?",
        "Neuer Radweg bei {spot}, ganze {number} Meter")),
}, ("Also: ", "Achtung, ", "Hm, ", "Leute, ", "Kurze Frage: "),
   ("!", ", danke", " haha", "...", ", bitte teilen", ". Läuft.", " schon wieder"),
   "heute gratis offen straße suche minuten leute verloren neu abend platz uhr")

PORTUGUESE = Language("pt", {
    "coffee": Topic(6, "☕ 🥐", """
        café cafezinho pingado pastel leite pão bolo coxinha expresso açúcar padaria torrada
        tapioca brigadeiro chá""", (
        "Café de graça na padaria {name} até as {hour}, {spot}",
        "O melhor {word} de {city} é o da {name}",
        "Um {word} e um {word} antes da chuva em {spot}")),
    "football": Topic(7, "⚽ 🔥", """
        gol jogo pênalti juiz torcida estádio clássico goleiro bandeira atacante campeonato
        cartão camisa técnico escanteio""", (
        "GOOOL! {spot} veio abaixo",
        "Não foi {word}, juiz, pelo amor de Deus",
        "Pelada às {hour} na quadra da {name}, falta goleiro")),
    "transit": Topic(5, "🚇 😩", """
        metrô trem ônibus atraso linha estação plataforma greve bilhete catraca vagão terminal
        motorista fila""", (
        "Metrô parado em {spot}, {number} minutos já",
        "Linha {few} com atraso, {word} lotado",
        "O {word} da rua {name} nunca passa")),
    "weather": Topic(4, "🌧️ ☀️", """
        chuva sol calor vento temporal praia frio trovão nuvens garoa raio alagamento""", (
        "Que {word} em {city} hoje",
        "Chegou o {word} em {spot}, guarda-chuva na mão",
        "{number} graus na rua {name}, socorro")),
    "concerts": Topic(5, "🎶 🥁", """
        show samba roda violão palco ingresso cantora pagode forró bateria festa bloco""", (
        "Roda de {word} na {name}, começa às {hour}",
        "Show de graça em {spot} hoje, cola lá")),
    "power cuts": Topic(2, "🔌 🕯️", """
        luz energia vela gerador apagão poste fio transformador geladeira lanterna bateria""", (
        "Falta luz na rua {name} desde as {hour}",
        "Apagão em {spot}, alguém mais?")),
    "traffic": Topic(4, "🚗 🚦", """
        trânsito batida semáforo avenida ponte obra moto túnel desvio caminhão buraco rodízio""", (
        "Trânsito parado na avenida {name}, evite {spot}",
        "Batida na {name}, {few} carros, uma faixa livre")),
    "pets": Topic(3, "🐶 🐱", """
        cachorro gato filhote coleira papagaio veterinário gatinho focinho passeio caramelo""", (
        "Cachorro perdido perto de {spot}, atende por {name}",
        "O {word} da {name} agora tem fã-clube")),
}, ("Gente, ", "Olha, ", "Atenção: ", "Nossa, ", "Alô, "),
   ("!", ", obrigado", " kkkk", "...", ", bora", " de novo", ", por favor compartilhem"),
   "hoje graça perto rua melhor minutos perdido noite aberto fechado praça alguém")

TURKISH = Language("tr", {
    "coffee": Topic(9, "☕ 😋", """
        kahve çay simit espresso latte börek poğaça lokum şeker kurabiye filtre baklava salep
        fincan cezve""", (
        "{name} kafede bedava kahve, {spot}, saat {hour} kadar",
        "{city} şehrinin en iyi {word} yeri {name}",
        "Kahve ve {word} keyfi, {spot} manzarası",
        "{spot} tarafında güzel kahve nerede var?")),
    "transit": Topic(6, "🚇 😩", """
        metro vapur otobüs metrobüs tramvay durak gecikme hat arıza bilet sefer iskele peron
        kapı""", (
        "Metro {number} dakikadır bekliyor, {spot}",
        "{name} durağında {word} yok, herkes yürüyor",
        "{Word} seferleri gecikmeli, {spot} çok kalabalık")),
    "street food": Topic(5, "🥙 😋", """
        döner kokoreç midye lahmacun balık kumpir pide köfte kebap ayran turşu künefe pilav""", (
        "{name} ustanın {word} efsane, {spot}",
        "Gece {hour} olmuş, hâlâ {word} kuyruğu var")),
    "football": Topic(5, "⚽ 🔥", """
        gol maç hakem penaltı derbi taraftar kaleci stat forma lig kupa tezahürat forvet""", (
        "GOL! {spot} yıkılıyor",
        "Bu nasıl {word}, hakem uyan",
        "Halı sahada bir kişi eksik, {name} saat {hour}")),
    "weather": Topic(4, "🌧️ ☀️", """
        yağmur güneş rüzgar kar fırtına sis lodos bulut şemsiye dolu sıcak soğuk gökkuşağı""", (
        "{city} üzerinde {word} var, dikkat",
        "{spot} şu an {word}, deniz çok güzel")),
    "pets": Topic(4, "🐱 🐾", """
        kedi köpek yavru martı mama tasma kuş patiler veteriner tekir kuyruk papağan""", (
        "{spot} kedileri yine uyuyor, adı {name}",
        "Kayıp {word}, {name} sokak, lütfen paylaşın")),
    "traffic": Topic(4, "🚗 😤", """
        trafik köprü kaza sahil otoban tünel ışık şerit minibüs taksi yol çevre sürücü""", (
        "Köprü yine dolu, {number} dakika aynı yerde",
        "{name} caddesinde {word}, {spot} kapalı")),
}, ("Arkadaşlar, ", "Dikkat: ", "Ya, ", "Bilgi: ", "Valla "),
   ("!", ", teşekkürler", " haha", "...", ", lütfen paylaşın", " yine", ", gelin"),
   "bugün bedava yakın açık kapalı sokak dakika kayıp yeni güzel saat kalabalık")

RUSSIAN = Language("ru", {
    "coffee": Topic(6, "☕ 🥐", """
        кофе капучино раф латте эспрессо круассан чай пирог сырники какао бариста зерно булочка
        торт блины""", (
        "Бесплатный кофе в «{name}» до {hour}, {spot}",
        "Лучший {word} в городе {city} у «{name}»",
        "Очередь за {word} у «{name}», {number} человек")),
    "transit": Topic(6, "🚇 😩", """
        метро поезд автобус трамвай задержка станция электричка эскалатор платформа вагон
        турникет маршрутка билет""", (
        "На станции {spot} задержка {number} минут",
        "{Word} опять не ходит, идём пешком через {name}",
        "В метро у {spot} не протолкнуться")),
    "weather": Topic(5, "❄️ 🌧️", """
        снег дождь солнце мороз ветер туман гроза метель лужи зонт гололёд оттепель радуга""", (
        "{Word} в городе {city}, одевайтесь теплее",
        "Обещали солнце, а тут {word} и {word}")),
    "football": Topic(4, "⚽ 🔥", """
        гол матч судья пенальти вратарь дерби стадион фанаты кубок шарф нападающий угловой""", (
        "ГОЛ! {spot} взорвался",
        "Какой {word}, судья, протри очки")),
    "traffic": Topic(4, "🚗 🚦", """
        пробка авария мост кольцо светофор ремонт парковка шоссе такси туннель эвакуатор""", (
        "Пробка на улице {name}, {few} балла",
        "{Word} у {spot}, объезжайте")),
    "pets": Topic(3, "🐶 🐱", """
        собака кот щенок котёнок поводок попугай хвост такса лапы ошейник""", (
        "Пропала собака у {spot}, зовут {name}",
        "{Word} спит на кассе в «{name}», не будите")),
    "housing": Topic(3, "🏠 🔑", """
        квартира комната аренда балкон хозяин ремонт лифт ключи студия диван кухня соседи""", (
        "Сдаётся комната, улица {name}, {number} минут до метро",
        "Ищу {word} рядом с {spot}, помогите")),
}, ("Ребята, ", "Внимание: ", "Ну вот, ", "Кстати, ", "Ого, "),
   ("!", ", спасибо", " ахаха", "...", ", репост", " опять", ". Красота."),
   "сегодня бесплатно рядом открыт закрыт улица лучший минут новый ищу вечером")
# fmt: on

EUROPEAN = (SPANISH, FRENCH, GERMAN, PORTUGUESE, TURKISH, RUSSIAN)
