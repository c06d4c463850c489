"""Given names, by which people are recognised whom nobody has introduced."""


def _listed(names: str) -> tuple[str, ...]:
    return tuple(names.split())


RUSSIAN = _listed(
    """
    Александр Александра Алексей Алина Алиса Алла Анастасия Анатолий Андрей Анна Антон Арина Артём Артур Богдан
    Борис Вадим Валентин Валентина Валерий Валерия Варвара Василий Василиса Вера Вероника Виктор Виктория Виталий
    Владимир Владислав Всеволод Вячеслав Галина Геннадий Георгий Герман Глеб Григорий Даниил Данила Дарья Денис
    Диана Дмитрий Евгений Евгения Егор Екатерина Елена Елизавета Захар Зоя Иван Игорь Илья Инна Ирина Карина Кирилл
    Кира Константин Ксения Лариса Лев Леонид Лидия Людмила Майя Максим Маргарита Марина Мария Марк Матвей Милана
    Михаил Надежда Наталья Никита Николай Нина Оксана Олег Ольга Павел Пётр Полина Раиса Роман Руслан Светлана Семён
    Сергей София Софья Станислав Степан Тамара Татьяна Тимофей Тимур Ульяна Фёдор Филипп Эдуард Эльвира Юлия Юрий
    Яков Яна Ярослав Аня Боря Вадик Валя Ваня Варя Вася Витя Вика Влад Володя Вова Гена Гриша Дима Даша Женя Катя
    Коля Костя Ксюша Лёша Лёня Лена Лера Лиза Люба Люда Макс Маша Митя Миша Надя Настя Наташа Оля Паша Петя Полли
    Рита Рома Саша Света Серёжа Слава Соня Стас Стёпа Таня Толя Федя Юля Юра Яша Лида Алёна Алёша Галя Тоня Гоша
    Даня Кирюша
    """
)
ENGLISH = _listed(
    """
    Aaron Adam Adrian Alan Albert Alex Alexander Alexis Alice Alison Amanda Amber Amelia Amy Andrea Andrew Andy
    Angela Anita Ann Anna Anne Anthony Anton Arthur Ashley Audrey Ava Barbara Barry Becky Ben Benjamin Bella Beth
    Betty Bill Bob Bobby Boris Brad Brandon Brenda Brian Bruce Carl Carla Carlos Carol Caroline Catherine Charles
    Charlie Charlotte Chloe Chris Christian Christina Christine Christopher Cindy Claire Clara Colin Connor Craig
    Cynthia Daisy Dan Daniel Danielle Daphne Dave David Dean Deborah Denise Dennis Derek Diana Diane Dmitry Donald
    Donna Dorothy Doug Douglas Dylan Ed Eddie Edward Eleanor Elena Elizabeth Ella Ellen Emily Emma Eric Erica Erin
    Ethan Eva Evan Evelyn Fiona Frances Frank Fred Gabriel Gail Gary Gavin George Gina Gloria Gordon Graham Greg
    Hannah Harold Harriet Harry Heather Helen Henry Holly Howard Hugo Ian Igor Irene Irina Isaac Isabel Isabella
    Ivan Jack Jackie Jacob James Jamie Jane Janet Jason Jeff Jennifer Jenny Jeremy Jerry Jess Jessica Jill Jim Joan
    Joanna Joe Joel John Jonathan Jordan Joseph Josh Joshua Joyce Juan Judith Judy Julia Julian Julie Justin Karen
    Kate Katherine Kathleen Kathy Katie Keith Kelly Ken Kevin Kim Kyle Laura Lauren Leah Lee Leo Leon Leonard Lewis
    Liam Lily Linda Lisa Liz Logan Louis Louise Lucas Lucy Luke Lynn Maggie Marcus Margaret Maria Marie Marina Mark
    Martha Martin Mary Matt Matthew Max Maya Megan Melissa Mia Michael Michelle Mike Molly Monica Nadia Nancy
    Natalie Natasha Nathan Neil Nick Nicholas Nicole Nina Nora Oleg Olga Oliver Olivia Oscar Owen Pamela Patricia
    Patrick Paul Paula Peter Phil Philip Phoebe Priya Rachel Raj Ralph Ray Raymond Rebecca Richard Rita Rob Robert
    Robin Roger Ron Ronald Rosa Rose Ross Roy Russell Ruth Ryan Sally Sam Samantha Samuel Sandra Sara Sarah Scott
    Sean Sergey Sharon Sheila Simon Sofia Sonia Sophia Sophie Spencer Stan Stella Stephanie Stephen Steve Steven
    Stuart Sue Susan Svetlana Sylvia Tania Tara Ted Teresa Terry Theo Thomas Tim Timothy Tina Toby Todd Tom Tony
    Tracy Valerie Vanessa Vera Victor Vicky Victoria Vincent Virginia Walter Wayne Wendy William Yuri Yusuf Zack
    Zara Zoe
    """
)
