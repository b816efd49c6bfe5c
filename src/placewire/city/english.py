"""English: every topic of city life, in many words."""

from __future__ import annotations

from placewire.city.vocabulary import Language, Topic

# fmt: off
TOPICS = {
    "coffee": Topic(8, "☕ 🥐 😋 🍰", """
        coffee espresso latte cappuccino brew croissant cortado mocha americano macchiato filter
        roast beans barista oat decaf chai matcha cake muffin pastry brownie scone cinnamon
        bagel aeropress ristretto affogato crema pourover arabica robusta teapot biscotti""", (
        "Free coffee at {name}, {spot} until {hour}!",
        "Best {word} in {city} is at {name} Café, no contest",
        "New café near {spot}: the {word} is worth the queue",
        "{number} people in line for {word} at {name}",
        "{Word} and a {word} by the window, rain outside, happy",
        "Who else lives on {word} before {hour} o'clock meetings?",
        'The sign at {name} says "no {word}, no talking" and I agree')),
    "street food": Topic(7, "🌮 🍜 🍔 😋", """
        tacos dumplings noodles burger kebab falafel ramen curry fries pizza sandwich wings
        barbecue skewers waffles shawarma samosa biryani jollof suya satay pho empanada arepa
        pancakes chili gyros bao hotdog salsa hummus paella laksa""", (
        "The {word} truck is back at {spot}, go now",
        "{Word} for {number} at {name}'s stall, cash only",
        "Cannot stop thinking about the {word} from {name}",
        "Late lunch: {word}, {word} and no regrets",
        "Is there still {word} left near {spot}?",
        "Queue for {word} at {name} goes round the corner",
        "Street food market tonight at {spot}: {word}, {word}, live music")),
    "traffic": Topic(7, "🚗 🚦 😤 🚧", """
        traffic jam accident roadworks detour lane bridge tunnel highway junction lights lorry
        tailback gridlock roundabout parking bus closure convoy breakdown pothole exit ramp
        diversion collision tow congestion overpass speed crossing taxi""", (
        "Total gridlock on {name} Road, avoid {spot}",
        "Accident near {spot}, {few} cars, one lane open",
        "{number} minutes to move past {name} Street, what is going on",
        "Traffic lights out at {name} and nobody knows who goes first",
        "{Word} on the ring road again, take {name} Avenue instead",
        "Stuck in a {word} behind a {word} since ten past {hour}",
        "Road closed at {spot} for {word}, follow the signs")),
    "weather": Topic(7, "🌧️ ☀️ ⛅ ❄️ 🌈", """
        rain sun wind cloud storm snow fog heat umbrella thunder drizzle hail frost breeze
        lightning sunshine ice humidity sunset rainbow forecast puddle gust mist cold shower
        sleet heatwave barometer blizzard temperature moonrise""", (
        "{Word} over {spot} right now, bring a coat",
        "Forecast said sun, got {word} and {word}",
        "What a sunset over {city} tonight",
        "{number} degrees in {city} and people are wearing shorts",
        "First {word} of the year here in {spot}",
        "The {word} took my umbrella on {name} Street",
        "Anyone else hear that {word} just now?")),
    "football": Topic(6, "⚽ 🏟️ 🙌 😭", """
        goal match penalty referee derby striker keeper offside league stadium fans defence
        corner tackle winger captain header equaliser cup kickoff transfer midfield coach bench
        crossbar hattrick substitute scarf volley assist terrace replay""", (
        "GOAL! {number} minutes in and {spot} is shaking",
        "That was never a {word}, referee needs glasses",
        "Two spare tickets for the derby, meet at {name} Arms",
        "{name} should be the {word}, says everyone in this pub",
        "Match day at {spot}: scarves, songs, {word}",
        "Lost {few} nil and still proud of the {word}",
        "Five a side at {name} Park needs a {word} tonight")),
    "concerts": Topic(5, "🎶 🎸 🎤 🔥", """
        concert band gig tickets stage encore guitar drums singer crowd setlist support jazz
        choir orchestra album vinyl bass festival chorus solo piano DJ rooftop karaoke merch
        soundcheck violin trumpet acoustic playlist ballad""", (
        "Doors at {hour}, {name} on stage, see you at {spot}",
        "That {word} solo just broke me",
        "Two tickets for the {name} concert going cheap",
        "Free jazz in the yard behind {name}, bring a chair",
        "Best {word} I have heard in {city} in years",
        "The queue for {word} is longer than the concert",
        "Open mic at {name} tonight, {word} welcome")),
    "jobs": Topic(5, "💼 📄 🤝", """
        waiter developer nurse driver chef manager cleaner designer teacher apprentice recruiter
        electrician plumber accountant receptionist freelancer analyst courier intern barber
        carpenter cook tailor editor translator welder guard bartender mechanic""", (
        "{name} & Co is hiring a {word} near {spot}, start Monday",
        "Looking for a job as {word} in {city}, any leads?",
        "Job interview at {hour} at {name}, they need a {word}, wish me luck",
        "Got the job! {Word} at {name}, drinks on me",
        "We need {few} people and one {word} for tonight, paid in cash",
        "Notice on the door of {name}: {word} wanted")),
    "housing": Topic(4, "🏠 🔑 📦", """
        flat rent room landlord deposit studio apartment balcony lease roommate garden kitchen
        heating basement viewing agent attic mortgage sublet furniture neighbour elevator bills
        bathroom doorbell mould curtains garage tenant boiler""", (
        "Room to rent near {spot}, {number} minutes to the station",
        "Flat viewing on {name} Street, {number} people for one small flat",
        "My {word} is gone again, thank you landlord",
        "Moving out of {name} Road: free {word} and {word}, come and take",
        "Anyone subletting a room with {word} in {city} from next month?",
        "Third floor, no lift, great {word}. I'll take it")),
    "lost and found": Topic(4, "🔎 🙏 🧤", """
        keys wallet phone bag scarf glasses backpack umbrella passport ring gloves camera
        headphones teddy card jacket notebook suitcase earring hat watch bracelet helmet laptop
        purse tablet violin necklace lunchbox skateboard""", (
        "Lost: black {word} near {spot}, please message me",
        "Found a {word} on the {name} bus, it is with the driver",
        "Whoever handed in my {word} at {name}: you are a hero",
        "Left my {word} at {name}, anyone there right now?",
        "Missing since {hour} o'clock: a blue {word}, reward",
        "Found: one small {word}, very sad, corner of {name} and Main")),
    "sales": Topic(5, "🛍️ 💸 🏷️", """
        sale discount shoes jacket books bargain vinyl lamps sofa dress jeans coupon outlet
        clearance voucher sneakers tables toys bikes boots carpets mugs plants perfume watches
        records tools blankets posters cushions""", (
        "{few}0 percent off all {word} at {name}, today only",
        "Closing down sale at {name}: {word}, {word}, everything must go",
        "Selling my old {word} near {spot}, make an offer",
        "Buy one {word}, get one free at {name}",
        "Flash sale until {hour}: {word} at half price",
        "I went in for {word} and came out with {number} {word}")),
    "transit": Topic(6, "🚇 🚌 🚉 😩", """
        train delay platform bus metro tram signal cancelled line ticket conductor strike ferry
        carriage escalator turnstile timetable station doors announcement commuter crowded
        express shuttle terminal gate replacement schedule driver track""", (
        "{number} minute delay on the {name} line, platform is full",
        "Train cancelled at {spot}, no announcement, just vibes",
        "Signal failure at {name} again. Again!",
        "Bus {number} skipped {name} Street for the third time today",
        "Escalator at {spot} is stairs now",
        "Is the {word} running? Nothing on the {word} board at {spot}",
        "Shout-out to the driver who waited for me at {name}")),
    "safety": Topic(3, "🚨 ⚠️ 👮", """
        police theft pickpocket alarm bike window sirens wallet witness car scam patrol burglary
        phone helicopter cctv graffiti warning lock streetlight report neighbours detective
        vandalism suspect locksmith""", (
        "Careful, pickpockets around {spot} this afternoon",
        "Sirens on {name} Street, {few} police cars, anyone know why?",
        "Bike {word} outside {name}, did anyone see something?",
        "Alarm at {name} has been going for {number} minutes",
        "Someone tried the {word} trick on me at {spot}, watch out",
        "Street lights dark on {name} Lane, please report it")),
    "markets": Topic(4, "🍅 🧀 💐 🥖", """
        market tomatoes cheese bread flowers honey apples fish strawberries spices olives eggs
        herbs mushrooms peaches stall onions antiques farmers jam pottery lemons basil mangoes
        avocados fabric candles peppers figs garlic""", (
        "{Word} at {name}'s stall smell like summer",
        "Farmers market at {spot} until {hour}, get the {word}",
        "Came for {word}, left with {word} and a plant",
        "{number} for two kilos of {word} at {spot}, not bad",
        "The {word} lady at {name} Square remembers everyone",
        "Flea market on {name} Street: {word}, {word}, old radios")),
    "art": Topic(3, "🎨 🖼️ ✨", """
        exhibition gallery mural museum painting sculpture sketch opening photography curator
        canvas ceramics installation portrait poster studio watercolour print graffiti textile
        collage auction landscape fresco biennale catalogue mosaic easel""", (
        "New {word} by {name} near {spot}, go and look up",
        "Free entry at the {name} Museum until {hour}",
        "That {word} opening had more wine than {word}",
        "Spent an hour in front of one {word} at {name}",
        "Life drawing at {name} tonight, bring a {word}",
        "Someone painted a {word} on the wall of {name} overnight")),
    "tech": Topic(4, "💻 🤖 🚀", """
        python meetup startup laptop demo data spark wifi code robots cloud kubernetes hackathon
        rust database bug deploy keyboard maps streaming compiler api pizza founders model
        server javascript kernel terminal backup latency""", (
        "{Word} meetup at {name} tonight, {number} seats left",
        "Anyone in {city} working on {word} and {word}?",
        "The wifi at {name} is faster than my office",
        "Demo went fine until the {word} caught fire (metaphorically)",
        "Free pizza and a talk about {word} at {spot}, {hour} sharp",
        "Looking for a co-founder who likes {word}, meet at {name}?")),
    "running": Topic(3, "🏃 👟 💪", """
        run marathon pace trail sneakers shoes interval stretching tempo knee sprint race loop
        warmup hill medal headwind kilometres sunrise watch bib heartbeat finish injury relay
        treadmill coach podium""", (
        "{number} km along the river, {word} all the way",
        "Group run from {name} at {hour}, all paces welcome",
        "New personal best around {spot}!",
        "My {word} says no, my head says one more loop",
        "Half marathon closes {name} Road, cheer loudly")),
    "cycling": Topic(3, "🚲 🚴 🔧", """
        bike lane helmet puncture cyclists cargo chain pedal tyre wheels lights brakes saddle
        pump commute gravel bell rack ebike tandem fixie basket courier mudguard spokes bikepath
        gears panniers velodrome""", (
        "New bike lane on {name} Street, finally",
        "Flat tyre near {spot}, does anyone have a {word}?",
        "Stolen: green bike with a {word}, last seen at {name}",
        "{number} cyclists and one {word} at the lights",
        "Free {word} check at {name} Cycles until {hour}")),
    "health": Topic(3, "🩺 💊 🧘", """
        doctor pharmacy clinic flu vaccine yoga dentist queue hospital pollen sleep headache
        nurse vitamins appointment fever back gym prescription blood therapy allergy checkup
        sauna bandage physiotherapy cough meditation""", (
        "Pharmacy at {name} is open until {hour}, they have {word}",
        "Blood donors needed at {spot} today, takes {number} minutes",
        "{Word} season is here, half of the office is at home",
        "Free yoga at {name} Park, bring a mat",
        "Does anyone know a good {word} near {spot}?")),
    "school": Topic(3, "📚 🎓 ✏️", """
        exam library homework students lecture campus teacher class essay thesis deadline maths
        physics playground graduation kids professor seminar chemistry dormitory history lunch
        notes scholarship spelling cafeteria recess laboratory""", (
        "Library at {spot} is full, {number} people on the floor",
        "{Word} at {hour} and I have not read the {word}",
        "Study group for {word}, room {number}, bring snacks",
        "Kids of {name} School built a {word}, it is brilliant",
        "Thesis handed in! {name}, put the kettle on")),
    "politics": Topic(3, "🗳️ 📣 🏛️", """
        council vote election mayor protest petition debate budget campaign minister march
        housing referendum taxes rally poll parliament candidate speech union bill strike
        leaflet coalition ballot district committee""", (
        "March from {name} to {spot} starts at {hour}, peaceful and loud",
        "Council votes on the {word} tonight, {name} Hall",
        "Mayor {name} says {word}, everyone else says {word}",
        "Sign the petition for a new {word} in {city}",
        "{number} people at the {word} debate, hot as an oven")),
    "pets": Topic(4, "🐶 🐱 🐾 🦜", """
        dog cat puppy kitten parrot rabbit leash vet hamster tail collar terrier poodle paws
        beagle whiskers tortoise labrador dachshund walker shelter treats goldfish canary
        squirrel hedgehog pigeon feathers""", (
        "Lost dog near {spot}, answers to {name}, very friendly",
        "This {word} owns {name} Street now",
        "Found a {word} by {spot}, no owner, hungry",
        "{name} the {word} turned {hour} today, party in the park",
        "Looking for a dog walker around {spot}, {few} times a week",
        "A {word} stole my sandwich at {name}")),
    "film": Topic(3, "🎬 🍿 📽️", """
        film cinema premiere popcorn sequel trailer thriller comedy director screening
        documentary subtitles western actor seats matinee horror animation script musical noir
        projector critic ending credits soundtrack stunt festival""", (
        "{name} at the {spot} cinema: {few} stars out of ten",
        "They are filming a {word} scene on {name} Street, traffic is held",
        "Outdoor {word} night behind {name}, blankets advised",
        "Cried at the {word}, ate all the popcorn",
        "Who wants to see the new {word} at {hour}?")),
    "power cuts": Topic(2, "🔌 🕯️ 🔦", """
        power electricity blackout candles generator lights fridge outage grid fuse transformer
        torch battery cable substation charger inverter darkness router elevator meter solar""", (
        "Power out on {name} Street since ten past {hour}, anyone else?",
        "No electricity around {spot}, {word} by candle light",
        "Power is back in {spot}, the {word} survived",
        "{name} Electric says {number} more minutes of darkness")),
    "flooding": Topic(2, "🌊 ☔ 🥾", """
        flood water river basement drain sandbags rain canal pump underpass boots rising puddle
        dyke storm cellar overflow bank leak rescue boat sewer culvert gauge""", (
        "Flooding under the {name} bridge, do not drive through",
        "River at {spot} is {number} cm higher than this morning",
        "Water in the {word} of {name} House, need a pump",
        "{Word} on {name} Lane blocked, street is flooded")),
    "fire": Topic(2, "🔥 🚒 🧯", """
        fire smoke sirens firefighters alarm flames ladder kitchen roof hydrant warehouse
        evacuation helmet hose bin chimney sprinkler smell extinguisher balcony toaster ashes""", (
        "Smoke over {spot}, fire engines on the way",
        "Fire alarm at {name}, everyone outside in slippers",
        "Bin fire behind {name}, already out, thanks {word} crew",
        "Small fire, lots of {word} on {name} Street, {few} trucks, nobody hurt")),
    "cricket": Topic(0.6, "🏏 🏟️ 🎉", """
        wicket six over runs bowler century innings umpire spin stumps batting captain catch
        boundary yorker toss pitch pavilion duck googly maiden slip powerplay trophy""", (
        "SIX! {name} puts it into the stands at {spot}",
        "{number} runs needed off the last {word}, cannot breathe",
        "{name} is on fire, another {word}",
        "Gully cricket near {spot}, one {word}, one broken window")),
}

ENGLISH = Language(
    "en",
    TOPICS,
    (
        "Honestly, ", "Ugh. ", "PSA: ", "Update: ", "OK so ", "Just in: ", "Heads up! ", "Wow, ",
        "Psst, ", "Question: ", "Good news: ", "Breaking: ", "So: ",
    ),
    (
        ". Anyone else?", "...", "!", ". Thanks!", ". So good.", ", please share", ". Classic.",
        " haha", ". Love this city.", ". Typical.", ", see you there", " lol", ". Help!", " again",
    ),
    """free today tonight near open closed street looking new lost found best people minutes
    station park road tickets please anyone again café line queue square""",
)
# fmt: on
