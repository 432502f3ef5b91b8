/*
 * languages.c: stop words and months.
 *
 * A stop word is one that nearly every text has and that tells no two texts apart:
 * articles, pronouns, prepositions, conjunctions, auxiliary verbs, question words. Words
 * that may be what a question is about (names of things, times, colours, "not") stay out
 * of the lists. Lists are written as words.c folds text: in lower case, cut at
 * apostrophes, so that "don't" is "don" and "t".
 *
 * Where a language has no list here, all of its words count; the weight of a word that
 * is everywhere is small by itself.
 */
#include "memory/languages.h"

#include <stddef.h>
#include <string.h>

static const char english_stops[] =
    "a about above after again against all also am an and any are aren as at be because "
    "been before being below between both but by can could couldn d did didn do does "
    "doesn doing don down during each for from further had hadn has hasn have haven "
    "having he her here hers herself him himself his how i if in into is isn it its "
    "itself just ll m me more most mustn my myself no nor not of off on once only or "
    "other "
    "our ours ourselves out over own re s same shan she should shouldn so some such t "
    "than that the their theirs them themselves then there these they this those "
    "through to too under until up us ve very was wasn we were weren what when where "
    "which while who whom whose why will with won would wouldn you your yours yourself "
    "yourselves";

static const char german_stops[] =
    "aber alle allem allen aller alles als also am an andere anderem anderen anderer "
    "anderes auch auf aus bei beim bin bis bist da damit dann das dass dein deine deinem "
    "deinen deiner dem den denn der des dich die dies diese diesem diesen dieser dieses "
    "dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure "
    "für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr "
    "ihre "
    "ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jene jenem jenen "
    "jener jenes kann können könnte man mein meine meinem meinen meiner mich mir mit "
    "muss musste nach noch nun nur ob oder ohne sehr sein seine seinem seinen seiner "
    "selbst sich sie sind so soll sollte über um und uns unser unsere unter vom von vor "
    "wann war waren warum was weil welche welchem welchen welcher welches wem wen wenn "
    "wer werde werden weshalb wie wieder will wir wird wirst wo wohin wollen wollte "
    "würde würden zu zum zur zwar zwischen";

static const char french_stops[] =
    "à ai aie ait alors as au aucun aussi autre aux avais avait avec avez avoir avons "
    "ayant "
    "c ça ce ceci cela ces cet cette ceux chez ci comme comment d dans de des donc dont "
    "du "
    "elle elles en encore entre es est et étaient étais était étant été être eu eux il "
    "ils "
    "j je l la là le les leur leurs lui m ma mais me même mes moi mon n ne nos notre "
    "nous "
    "on ont ou où par pas pendant peu peut plus pour pourquoi qu quand que quel quelle "
    "quelles quels qui quoi s sa sans se sera ses si son sont sous suis sur t ta te tes "
    "toi "
    "ton tous tout toute toutes très tu un une vers vos votre vous y";

static const char spanish_stops[] = "a al algo algunos ante antes aquel aquella como "
                                    "cómo con contra cual cuál cuáles cuando "
                                    "cuándo de del desde donde dónde durante e el él "
                                    "ella ellas ellos en entre era eran eras "
                                    "es esa esas ese eso esos esta está están estar "
                                    "estas este esto estos estoy fue fueron "
                                    "fui ha han has hasta hay he la las le les lo los "
                                    "más me mi mis mucho muy nada ni nos "
                                    "nosotros o os otra otro para pero por porque qué "
                                    "que quien quién quienes se sea ser si "
                                    "sí sin sobre son soy su sus también tanto te tengo "
                                    "ti tiene tienen todo todos tu tú tus "
                                    "un una uno unos y ya yo";

static const char italian_stops[] =
    "a agli ai al alla alle allo anche c che chi ci cioè come con contro cosa cui d da "
    "dagli "
    "dai dal dalla dalle dallo degli dei del dell della delle dello di dopo dov dove e è "
    "ed "
    "era erano eri essere gli ha hai hanno ho i il in io l la le lei li lo loro lui ma "
    "me mi "
    "mia mie miei mio ne negli nei nel nella nelle nello noi non nostra nostro o per "
    "perché "
    "più poi quale quali quando quanto quella quelle quelli quello questa queste questi "
    "questo qui se sei si sia siamo siete solo sono sta stata stato su sua sue sui sul "
    "sulla "
    "sulle suo suoi te ti tra tu tua tue tuo tuoi tutti tutto un una uno vi voi";

static const char portuguese_stops[] =
    "a à ao aos aquela aquele aquilo as às até com como da das de dela dele deles depois "
    "do "
    "dos e é ela elas ele eles em entre era eram essa esse esta está estão estava este "
    "eu foi "
    "foram fui há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na "
    "nas "
    "nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos por "
    "porque "
    "qual quais quando que quê quem são se sem ser seu seus sido só sobre sou sua suas "
    "também "
    "te tem têm tenho ter teu tua tu um uma umas uns você vocês";

static const char dutch_stops[] =
    "aan al alles als ben bent bij dan dat de der deze die dit doch door dus een en er "
    "ge "
    "had heb hebben hebt heeft hem het hier hij hoe hun ik in is ja je jij jou jouw "
    "jullie "
    "kan kon kunnen maar me men met mij mijn na naar nog nu of om omdat onder ons onze "
    "ook op "
    "over te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren "
    "was "
    "wat we wel welke werd wie wij wil wordt worden zal ze zei zelf zich zij zijn zo zou";

static const char swedish_stops[] =
    "alla allt att av blev bli blir då de dem den denna deras dess dessa det detta dig "
    "din dina ditt du där efter ej eller en er era ert ett från för ha hade han hans har "
    "henne hennes hon honom hur här i icke inte jag ju kan kunde man med mellan men mig "
    "min "
    "mina mitt mot mycket ni nu när någon något några och om oss på samma sedan sig sin "
    "sina "
    "sitt själv skulle som så till under upp ut utan vad var vara varför vart vem vi vid "
    "vilka vilken vilket är även över";

static const char danish_stops[] =
    "ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette "
    "dig "
    "din dine disse dog du efter eller en end er et for fordi fra før ham han hans har "
    "havde "
    "have hende hendes her hun hvad hvem hver hvis hvor hvorfor hvornår i ind jeg jer jo "
    "kan kunne man mange med meget men mig min mine mit mod ned noget nogle nu når og "
    "også om "
    "op os over på selv sig sin sine sit skal skulle som sådan thi til ud under var vi "
    "vil "
    "ville vor være været";

static const char norwegian_stops[] = "alle at av bare begge ble bli blir da de deg dei "
                                      "dem den denne der deres det dette din "
                                      "disse ditt du eller en enn er et ett for fordi "
                                      "fra før ha hadde han hans har henne her "
                                      "hun hva hvem hver hvilken hvis hvor hvordan "
                                      "hvorfor i ikkje ikke inn ja jeg kan kom kun "
                                      "kunne man mange med meg meget mellom men mer min "
                                      "mitt mot mye nå når noe noen og også om "
                                      "opp oss over på samme seg selv sin sine sitt skal "
                                      "skulle slik som så til ut uten vår "
                                      "var være vært vi vil ville ved";

static const char finnish_stops[] = "ei eivät en ennen entä että he heidän heille heitä "
                                    "hän hänelle hänen hänet häntä itse ja "
                                    "jo joka jos jossa joten jotka kanssa koska kuin "
                                    "kuinka kuka kun me meidän meille meitä "
                                    "mikä miksi milloin minkä minua minulla minulle "
                                    "minun minä missä mitkä mitä mukaan mutta "
                                    "myös ne niiden niin niitä no noin nuo nyt näiden "
                                    "näin näitä nämä ole olen olet oli olin "
                                    "olivat olla olleet ollut on ovat se sekä sen siellä "
                                    "sille sillä sinua sinulla sinulle "
                                    "sinun sinä siinä sitten sitä tai te teidän teille "
                                    "teitä tuo tuon tähän tällä tämä tämän "
                                    "tänne tässä tätä vaan vai vaikka";

static const char russian_stops[] =
    "а без более бы был была были было быть в вам вас ведь весь во вот все всего всех "
    "всю вы "
    "где да даже для до его ее ей ему если есть еще ж же за здесь и из или им их к как "
    "какая какие какой ко когда кого кому который которые кто куда ли либо лишь между "
    "меня "
    "мне мной мог мой моя моё мои мы на над нам нас наш не него нее ней нему нет ни них "
    "но ну "
    "о об однако он она они оно от ото очень перед по под после потом потому почему при "
    "про с "
    "сам свой своя свои себе себя сейчас со так также такой там тебе тебя тем то тоже "
    "только "
    "тот тут ты у уж уже хоть чего чем что чтобы чья эта эти это этот этого этой этом "
    "эту я";

static const char english_months[] = "January February March April May June July August "
                                     "September October November December";

static const language languages[] = {
    {"english", english_stops, english_months, 1},
    {"porter", english_stops, english_months, 1},
    {"german", german_stops,
     "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
     0},
    {"french", french_stops,
     "janvier février mars avril mai juin juillet août septembre octobre novembre "
     "décembre",
     0},
    {"spanish", spanish_stops,
     "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
     "diciembre",
     0},
    {"italian", italian_stops,
     "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
     "novembre "
     "dicembre",
     0},
    {"portuguese", portuguese_stops,
     "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
     "dezembro",
     0},
    {"dutch", dutch_stops,
     "januari februari maart april mei juni juli augustus september oktober november "
     "december",
     0},
    {"swedish", swedish_stops,
     "januari februari mars april maj juni juli augusti september oktober november "
     "december",
     0},
    {"danish", danish_stops,
     "januar februar marts april maj juni juli august september oktober november "
     "december",
     0},
    {"norwegian", norwegian_stops,
     "januar februar mars april mai juni juli august september oktober november desember",
     0},
    {"finnish", finnish_stops,
     "tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu elokuu syyskuu "
     "lokakuu "
     "marraskuu joulukuu",
     0},
    {"russian", russian_stops,
     "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
     0},
    {"indonesian", NULL,
     "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November "
     "Desember",
     1},
};

const language *language_of(const char *name)
{
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (!strcmp(languages[i].name, name))
            return &languages[i];
    return NULL;
}
