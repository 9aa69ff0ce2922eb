"""Short texts in four languages, and their encoding for the example text model."""

LANGUAGES = ["English", "French", "German", "Spanish"]

SENTENCES = {
    "English": [
        "the morning train was late again and nobody on the platform seemed to mind",
        "she put the kettle on and looked out at the rain over the garden",
        "we should have taken the other road because this one ends at the river",
        "there is a small shop around the corner that sells bread and newspapers",
        "what would you like to eat tonight if we stay at home with the children",
        "he wrote a long letter to his brother about the house they had bought",
        "the weather has been good this week and the apples are nearly ready",
        "my friends were waiting with their bicycles when I came out of school",
    ],
    "French": [
        "le train du matin était encore en retard et personne sur le quai ne disait rien",
        "elle a mis de l'eau à chauffer et regardait la pluie tomber sur le jardin",
        "nous aurions dû prendre l'autre route parce que celle-ci finit à la rivière",
        "il y a une petite boutique au coin de la rue qui vend du pain et des journaux",
        "qu'est-ce que vous voulez manger ce soir si nous restons à la maison avec les enfants",
        "il a écrit une longue lettre à son frère au sujet de la maison qu'ils avaient achetée",
        "le temps a été beau cette semaine et les pommes sont presque mûres",
        "mes amis attendaient avec leurs vélos quand je suis sorti de l'école",
    ],
    "German": [
        "der Zug am Morgen war wieder zu spät und niemand auf dem Bahnsteig sagte etwas",
        "sie stellte den Wasserkessel auf und sah hinaus in den Regen über dem Garten",
        "wir hätten die andere Straße nehmen sollen denn diese endet am Fluss",
        "um die Ecke gibt es einen kleinen Laden der Brot und Zeitungen verkauft",
        "was möchtet ihr heute Abend essen wenn wir mit den Kindern zu Hause bleiben",
        "er schrieb seinem Bruder einen langen Brief über das Haus das sie gekauft hatten",
        "das Wetter war diese Woche schön und die Äpfel sind bald reif",
        "meine Freunde warteten mit ihren Fahrrädern als ich aus der Schule kam",
    ],
    "Spanish": [
        "el tren de la mañana llegó tarde otra vez y nadie en el andén decía nada",
        "ella puso el agua a calentar y miraba la lluvia sobre el jardín",
        "deberíamos haber tomado el otro camino porque este termina en el río",
        "hay una pequeña tienda a la vuelta de la esquina que vende pan y periódicos",
        "qué queréis comer esta noche si nos quedamos en casa con los niños",
        "escribió una carta larga a su hermano sobre la casa que habían comprado",
        "el tiempo ha sido bueno esta semana y las manzanas están casi maduras",
        "mis amigos esperaban con sus bicicletas cuando salí de la escuela",
    ],
}


def encode(sentence: str, length: int) -> tuple[list, list]:
    """UTF-8 bytes and a 0/1 mask, both cut or padded to `length`."""
    data = list(sentence.lower().encode())[:length]
    return data + [0] * (length - len(data)), [1] * len(data) + [0] * (length - len(data))
