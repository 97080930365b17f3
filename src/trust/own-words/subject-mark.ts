import { normalForm } from "../../lib/normal-form.ts";
import { stripHiddenCharacters } from "./hidden-characters.ts";

/**
 * What mail programs put before the subject of a reply or forward, by language. An own subject that begins with one of
 * them only loses its `@target`; a missing one would let a stranger's subject count as a command.
 */
const MARKS = [
  // English, and what programs of all languages use.
  "re fw fwd reply forward forwarded forward_of forwarded_message rsp resp",
  // German, Dutch, Afrikaans, Frisian.
  "aw wg antw antwort weitergeleitet weiterleitung antwoord doorst doorgestuurd betr",
  // The North.
  "sv svar vs vb vidarebefordrat videresendt videres fremsendt vedr vl vast vastaus välitetty fs framsent",
  // French, Italian, Spanish, Catalan, Galician, Portuguese, Romanian.
  "ré rép réf réponse tr transféré r rif ris i inoltra inoltrato rv res resp rta rpta reenv reenviado reenviada reenvío reenviament enc encam encaminhada encaminhado resposta respuesta risposta răsp răspuns redirecționat",
  // Polish, Czech, Slovak, Slovene, Croatian, Serbian.
  "odp pd przek przekazano odpowiedź odpověď odpoveď přep přeposláno předáno presl preposlané odg odgovor posr posredovano prosl proslijeđeno proslđ prosleđeno naprej",
  // Hungarian, Estonian, Latvian, Lithuanian, Albanian.
  "vá válasz továbbítva továbbítás tov edasi vastus atb atbilde pārsūt pārsūtīts ats atsakymas persiųsta pers përgj",
  // Turkish, Azerbaijani, Welsh, Irish, Icelandic, Indonesian, Malay, Vietnamese.
  "ynt yanıt ilt ilet iletilen iletildi cvp cevap cevabı cavab yml ymlaen bls balas balasan trs terusan diteruskan tl trả_lời chuyển_tiếp",
  // Greek.
  "απ απαντ απάντηση πρθ σχετ προωθ προώθηση",
  // Russian, Ukrainian, Bulgarian, Serbian, Macedonian.
  "отв ответ на пер перес пересл переслано переслать пересылка відп відповідь пересилання отг отговор отн препр препратено одг одговор прослед проследено прослеђено",
  // Hebrew, Arabic, Persian, Urdu.
  "השב תשובה תגובה הועבר העברה رد الرد إعادة_توجيه إعادة تحويل محول پاسخ بازارسال ارسال جواب",
  // Chinese, Japanese, Korean, Thai, Hindi.
  "回复 回覆 回復 答复 答覆 转发 轉發 轉寄 轉寄信件 转寄 返信 返 転送 답장 회신 전달 전송 ตอบกลับ ตอบ ส่งต่อ उत्तर प्रतिउत्तर अग्रेषित",
];

/**
 * What mail programs put before the subject of automatic mails: receipts, answers to invitations, absence notices,
 * recalls and reports. The rest of such a subject is by the author of the first mail.
 */
const PROGRAMS = [
  // English.
  "read not_read read_receipt return_receipt accepted declined tentative tentatively_accepted new_time_proposed canceled cancelled updated_invitation canceled_event cancelled_event phish_alert",
  "automatic_reply auto-reply auto_reply autoreply auto_response autoresponse out_of_office out_of_the_office out_of_office_reply out_of_office_autoreply recall message_recall message_recall_success message_recall_failure",
  "undeliverable undelivered not_delivered delivered delivery_delayed delivery_failure delivery_receipt mail_delivery_failed failure_notice returned_mail relayed",
  // German.
  "gelesen ungelesen nicht_gelesen lesebestätigung angenommen zugesagt abgelehnt abgesagt mit_vorbehalt mit_vorbehalt_angenommen mit_vorbehalt_zugesagt zugesagt_mit_vorbehalt vorläufig vorläufig_zugesagt neuer_zeitvorschlag",
  "automatische_antwort abwesenheitsnotiz abwesenheit abwesend außer_haus nicht_im_büro rückruf nachrichtenrückruf unzustellbar nicht_zustellbar zugestellt übermittelt empfangsbestätigung",
  // Dutch, Afrikaans.
  "gelezen niet_gelezen ongelezen leesbevestiging geaccepteerd aanvaard geweigerd afgewezen voorlopig voorlopig_geaccepteerd onder_voorbehoud geannuleerd automatisch_antwoord automatische_reactie afwezig afwezigheid niet_aanwezig intrekken ingetrokken onbestelbaar niet_te_bezorgen bezorgd afgeleverd",
  "gelees aanvaar afgekeur outomatiese_antwoord uit_kantoor onaflewerbaar afgelewer",
  // Swedish, Danish, Norwegian, Finnish, Icelandic.
  "läst oläst ej_läst accepterat accepterad avböjt avböjd avvisat preliminärt preliminär inställt autosvar automatiskt_svar frånvaro frånvarande återkalla återkallande kan_inte_levereras gick_inte_att_leverera olevererbart levererat",
  "læst ulæst ikke_læst accepteret afvist afslået foreløbig foreløbigt aflyst automatisk_svar fraværende ikke_til_stede tilbagekald tilbagekaldelse kan_ikke_leveres leveret",
  "lest ulest ikke_lest godtatt akseptert avslått foreløpig avlyst fraværsmelding fravær ikke_på_kontoret tilbakekall tilbakekalling levert",
  "luettu ei_luettu lukematta hyväksytty hylätty kieltäydytty alustava alustavasti_hyväksytty peruutettu automaattinen_vastaus poissa poissaolo poissaoloviesti poissa_toimistosta peruuta_viesti ei_voi_toimittaa toimittamaton toimitettu",
  "lesið ólesið samþykkt hafnað með_fyrirvara sjálfvirkt_svar fjarvera óafhendanlegt afhent",
  // French.
  "lu non_lu accepté acceptée refusé refusée décliné déclinée provisoire provisoirement_accepté annulé réponse_automatique absence absent absente absence_du_bureau absent_du_bureau rappel_du_message rappel_de_message non_remis non_remise non_distribuable échec_de_la_remise remis distribué accusé_de_lecture accusé_de_réception",
  // Italian.
  "letto letta non_letto conferma_di_lettura accettato accettata rifiutato rifiutata provvisorio provvisoria annullato risposta_automatica fuori_sede fuori_ufficio assente assenza richiamo richiamo_del_messaggio non_recapitabile non_recapitato mancato_recapito recapitato consegnato",
  // Spanish, Catalan, Galician.
  "leído leída no_leído confirmación_de_lectura aceptado aceptada rechazado rechazada declinado provisional tentativo cancelado cancelada respuesta_automática fuera_de_la_oficina fuera_de_oficina ausente ausencia recuperar recuperación no_se_puede_entregar no_entregado no_entregable entregado",
  "llegit no_llegit acceptat acceptada rebutjat rebutjada resposta_automàtica fora_de_l'oficina absència no_es_pot_lliurar lliurat lido rexeitado fóra_da_oficina non_se_pode_entregar",
  // Portuguese, Romanian.
  "lida não_lido não_lida aceito aceita aceite recusado recusada provisório provisória resposta_automática ausência ausência_temporária fora_do_escritório não_entregue não_foi_possível_entregar entregue",
  "citit citită necitit acceptat acceptată refuzat respins provizoriu anulat răspuns_automat absent în_afara_biroului absență rechemare nelivrabil nelivrat imposibil_de_livrat livrat",
  // Polish, Czech, Slovak.
  "przeczytano przeczytane nieprzeczytane zaakceptowano zaakceptowane przyjęto przyjęte odrzucono odrzucone wstępnie wstępnie_zaakceptowano wstępna_akceptacja anulowano odpowiedź_automatyczna automatyczna_odpowiedź autoodpowiedź poza_biurem nieobecność nieobecny odwołanie odwołaj niedostarczalne niedostarczone nie_można_dostarczyć dostarczono dostarczone",
  "přečteno nepřečteno přijato odmítnuto nezávazně předběžně zrušeno automatická_odpověď mimo_kancelář nepřítomnost odvolání odvolat nedoručitelné nelze_doručit doručeno",
  "prečítané neprečítané prijaté odmietnuté nezáväzne predbežne zrušené automatická_odpoveď mimo_kancelárie neprítomnosť odvolanie odvolať nedoručiteľné nie_je_možné_doručiť nedá_sa_doručiť doručené",
  // Slovene, Croatian, Bosnian, Serbian.
  "prebrano neprebrano sprejeto zavrnjeno začasno pogojno preklicano samodejni_odgovor odsoten odsotnost odsotnost_iz_pisarne preklic nedostavljivo ni_mogoče_dostaviti dostavljeno",
  "pročitano nepročitano prihvaćeno odbijeno uvjetno uslovno otkazano automatski_odgovor izvan_ureda van_kancelarije odsutan odsutnost odsustvo opoziv neisporučivo nije_moguće_isporučiti isporučeno",
  // Hungarian, Estonian, Latvian, Lithuanian, Albanian.
  "elolvasva olvasott olvasatlan elfogadva elutasítva feltételes feltételesen feltételesen_elfogadva lemondva automatikus_válasz házon_kívül irodán_kívül nincs_az_irodában visszahívás visszavonás kézbesíthetetlen nem_kézbesíthető kézbesítve",
  "loetud lugemata aktsepteeritud vastu_võetud keeldutud tagasi_lükatud esialgne automaatvastus automaatne_vastus kontorist_väljas eemalolek tagasikutsumine kohaletoimetamatu ei_saa_kohale_toimetada kohale_toimetatud",
  "izlasīts nelasīts pieņemts akceptēts noraidīts provizorisks provizoriski automātiska_atbilde automātiskā_atbilde ārpus_biroja prombūtne atsaukums atsaukšana nepiegādājams piegādāts",
  "perskaityta neskaityta priimta atmesta preliminariai negalutinis automatinis_atsakymas ne_biure nėra_biure atšaukimas nepristatoma nepristatyta pristatyta lexuar pranuar refuzuar përgjigje_automatike jashtë_zyrës dorëzuar",
  // Turkish, Azerbaijani, Welsh, Irish, Indonesian, Malay, Vietnamese.
  "okundu okunmadı kabul_edildi reddedildi geçici kararsız iptal_edildi otomatik_yanıt işyeri_dışında ofis_dışında geri_çağırma geri_çağır teslim_edilemedi teslim_edilemez teslim_edildi oxundu qəbul_edildi rədd_edildi avtomatik_cavab ofisdən_kənar çatdırılmadı çatdırıldı",
  "darllenwyd derbyniwyd gwrthodwyd ateb_awtomatig allan_o'r_swyddfa léite glactha diúltaithe freagra_uathoibríoch as_oifig",
  "dibaca telah_dibaca belum_dibaca tidak_dibaca diterima ditolak tentatif dibatalkan balasan_otomatis jawaban_otomatis balasan_automatik di_luar_kantor luar_pejabat penarikan_kembali tidak_terkirim tidak_dapat_dikirim tidak_dapat_dihantar terkirim dihantar",
  "đã_đọc chưa_đọc đã_chấp_nhận chấp_nhận đã_từ_chối từ_chối dự_kiến tạm_chấp_nhận đã_hủy trả_lời_tự_động tự_động_trả_lời thư_trả_lời_tự_động vắng_mặt ngoài_văn_phòng thu_hồi không_thể_gửi không_gửi_được đã_gửi",
  // Greek.
  "διαβάστηκε αναγνώστηκε αναγνώσθηκε μη_αναγνωσμένο αποδοχή αποδεκτό απόρριψη απορρίφθηκε δοκιμαστικά υπό_αίρεση ακυρώθηκε αυτόματη_απάντηση εκτός_γραφείου ανάκληση δεν_παραδόθηκε μη_παραδοτέο παραδόθηκε",
  // Russian, Ukrainian, Bulgarian, Serbian, Macedonian.
  "прочитано прочтено не_прочитано непрочитано принято отклонено под_вопросом предварительно отменено автоматический_ответ автоответ нет_на_работе нет_на_месте вне_офиса отозвать отзыв_сообщения недоставлено не_доставлено не_удается_доставить доставлено",
  "прийнято відхилено під_питанням попередньо скасовано автоматична_відповідь автовідповідь поза_офісом відкликання відкликати не_доставлено неможливо_доставити прочетено непрочетено прието отказано отхвърлено условно автоматичен_отговор извън_офиса отзоваване недоставено недоставимо доставено",
  "прихваћено одбијено аутоматски_одговор ван_канцеларије опозив неиспоручиво испоручено прифатено одбиено автоматски_одговор надвор_од_канцеларија испорачано",
  // Hebrew, Arabic, Persian, Urdu.
  "נקרא לא_נקרא התקבל אושר נדחה טנטטיבי בוטל מענה_אוטומטי תשובה_אוטומטית מחוץ_למשרד ביטול_שליחה לא_ניתן_למסירה לא_נמסר נמסר",
  "مقروء مقروءة غير_مقروءة تمت_القراءة مقبول تم_القبول قبول مرفوض تم_الرفض رفض مبدئي رد_تلقائي الرد_التلقائي خارج_المكتب استدعاء استرجاع غير_قابل_للتسليم لم_يتم_التسليم تم_التسليم",
  "خوانده_شد خوانده_نشده پذیرفته_شد پذیرفته رد_شد موقت پاسخ_خودکار خارج_از_دفتر فراخوانی غیرقابل_تحویل تحویل_داده_شد پڑھا_گیا مسترد خودکار_جواب دفتر_سے_باہر",
  // Chinese, Japanese, Korean, Thai, Hindi.
  "已读 已讀 未读 未讀 已接受 接受 已拒绝 已拒絕 拒绝 拒絕 谢绝 謝絕 已谢绝 已謝絕 暂定 暫定 已取消 自动答复 自动回复 自動回覆 自動回復 自動答覆 外出 不在办公室 不在辦公室 撤回 召回 收回 无法送达 无法投递 無法傳遞 無法投遞 未送达 未送達 未传递 未傳遞 已送达 已送達 已传递 已傳遞",
  "開封済み 開封済 開封 既読 未開封 未読 承諾 承諾済み 辞退 辞退済み 仮承諾 仮の予定 自動応答 自動返信 不在 不在通知 外出中 取り消し 回収 メッセージの取り消し 配信不能 配達不能 配信不可 配信済み 配信完了",
  "읽음 읽지_않음 읽지않음 수락 수락됨 거절 거절됨 미정 임시 취소됨 자동_회신 자동회신 자동_응답 부재_중 부재중 회수 배달되지_않음 배달할_수_없음 배달_못_함 배달됨",
  "อ่านแล้ว ยังไม่ได้อ่าน ยอมรับ ยอมรับแล้ว ตอบรับ ปฏิเสธ ปฏิเสธแล้ว ไม่แน่นอน ตอบกลับอัตโนมัติ การตอบกลับอัตโนมัติ ไม่อยู่ที่สำนักงาน เรียกคืน ไม่สามารถส่งได้ ส่งไม่ได้ ส่งแล้ว पढ़ा पढ़ा_गया स्वीकृत अस्वीकृत अनंतिम स्वचालित_उत्तर स्वचालित_जवाब कार्यालय_से_बाहर वितरित_नहीं वितरित",
];

/** Words of Outlook and Exchange before the subject of an assigned task and of a forwarded meeting. */
const OUTLOOK = [
  // English, German, Dutch.
  "meeting_forward_notification task_request task_accepted task_declined task_completed task_update task_updated task_status_report task_cancelled task_canceled",
  "benachrichtigung_über_besprechungsweiterleitung besprechungsweiterleitungsbenachrichtigung besprechungs-weiterleitungsbenachrichtigung weiterleitungsbenachrichtigung weiterleitungsbenachrichtigung_für_besprechung weiterleitungsbenachrichtigung_für_besprechungen benachrichtigung_über_weitergeleitete_besprechung besprechung_weitergeleitet aufgabenanfrage aufgabe_angenommen aufgabe_zugesagt aufgabe_abgelehnt aufgabe_erledigt aufgabe_abgeschlossen aufgabe_aktualisiert aufgabenaktualisierung aufgabenstatusbericht aufgabe_abgesagt",
  "melding_van_doorgestuurde_vergadering melding_voor_doorgestuurde_vergadering melding_doorsturen_vergadering kennisgeving_van_doorgestuurde_vergadering taakverzoek taak_geaccepteerd taak_geweigerd taak_afgewezen taak_voltooid taakupdate taak_bijgewerkt",
  // The North.
  "meddelande_om_vidarebefordrat_möte meddelande_om_vidarebefordran_av_möte uppgiftsbegäran aktivitetsförfrågan uppgift_accepterad uppgift_avböjd uppgift_slutförd uppdatering_av_uppgift uppgiftsuppdatering",
  "meddelelse_om_videresendt_møde meddelelse_om_videresendelse_af_møde opgaveanmodning opgave_accepteret opgave_afvist opgave_fuldført opgaveopdatering melding_om_videresendt_møte varsel_om_videresendt_møte oppgaveforespørsel oppgave_godtatt oppgave_avslått oppgave_fullført oppgaveoppdatering",
  "kokouksen_edelleenlähetysilmoitus ilmoitus_kokouksen_välittämisestä ilmoitus_kokouskutsun_välittämisestä tehtäväpyyntö tehtävä_hyväksytty tehtävä_hylätty tehtävä_valmis tehtävä_suoritettu tehtävän_päivitys",
  // French, Italian, Spanish, Catalan, Portuguese, Romanian.
  "notification_de_transfert_de_réunion notification_de_transfert_de_la_réunion notification_de_réunion_transférée demande_de_tâche tâche_acceptée tâche_refusée tâche_déclinée tâche_terminée tâche_achevée mise_à_jour_de_tâche mise_à_jour_de_la_tâche tâche_mise_à_jour",
  "notifica_di_inoltro_riunione notifica_di_inoltro_della_riunione notifica_inoltro_riunione richiesta_attività richiesta_di_attività attività_accettata attività_rifiutata attività_completata aggiornamento_attività",
  "notificación_de_reenvío_de_reunión notificación_de_reenvío_de_la_reunión notificación_de_reunión_reenviada solicitud_de_tarea petición_de_tarea tarea_aceptada tarea_rechazada tarea_completada actualización_de_tarea notificació_de_reenviament_de_reunió sol·licitud_de_tasca tasca_acceptada tasca_rebutjada tasca_completada",
  "notificação_de_encaminhamento_de_reunião notificação_de_reencaminhamento_de_reunião notificação_de_reunião_encaminhada solicitação_de_tarefa pedido_de_tarefa tarefa_aceita tarefa_aceite tarefa_recusada tarefa_concluída atualização_de_tarefa notificare_de_redirecționare_a_întâlnirii notificare_redirecționare_întâlnire solicitare_de_activitate activitate_acceptată activitate_refuzată activitate_terminată actualizare_activitate",
  // Polish, Czech, Slovak, Slovene, Croatian, Serbian.
  "powiadomienie_o_przesłaniu_dalej_spotkania powiadomienie_o_przekazaniu_spotkania powiadomienie_o_przesłaniu_spotkania_dalej żądanie_zadania zlecenie_zadania zadanie_zaakceptowane zadanie_przyjęte zadanie_odrzucone zadanie_ukończone zadanie_wykonane aktualizacja_zadania",
  "oznámení_o_předání_schůzky oznámení_o_přeposlání_schůzky žádost_o_úkol úkol_přijat úkol_odmítnut úkol_dokončen aktualizace_úkolu oznámenie_o_preposlaní_schôdze oznámenie_o_postúpení_schôdze žiadosť_o_úlohu úloha_prijatá úloha_odmietnutá úloha_dokončená aktualizácia_úlohy",
  "obvestilo_o_posredovanju_srečanja zahteva_za_opravilo opravilo_sprejeto opravilo_zavrnjeno opravilo_dokončano obavijest_o_prosljeđivanju_sastanka zahtjev_za_zadatak zadatak_prihvaćen zadatak_odbijen zadatak_dovršen obaveštenje_o_prosleđivanju_sastanka zahtev_za_zadatak zadatak_završen",
  // Hungarian, Estonian, Latvian, Lithuanian, Turkish, Indonesian, Vietnamese.
  "értesítés_értekezlet_továbbításáról értekezlet_továbbításáról_szóló_értesítés feladatkérés feladat_elfogadva feladat_elutasítva feladat_kész feladat_befejezve feladat_frissítése koosoleku_edastamise_teatis ülesandetaotlus ülesanne_vastu_võetud ülesanne_tagasi_lükatud ülesanne_lõpetatud sapulces_pārsūtīšanas_paziņojums uzdevuma_pieprasījums uzdevums_pieņemts uzdevums_noraidīts uzdevums_pabeigts pranešimas_apie_persiųstą_susitikimą užduoties_prašymas užduotis_priimta užduotis_atmesta užduotis_baigta",
  "toplantı_iletme_bildirimi toplantı_iletme_bildirisi görev_isteği görev_kabul_edildi görev_reddedildi görev_tamamlandı görev_güncelleştirmesi görev_güncellemesi pemberitahuan_penerusan_rapat permintaan_tugas tugas_diterima tugas_ditolak tugas_selesai thông_báo_chuyển_tiếp_cuộc_họp yêu_cầu_nhiệm_vụ nhiệm_vụ_được_chấp_nhận nhiệm_vụ_bị_từ_chối nhiệm_vụ_đã_hoàn_thành",
  // Greek, Russian, Ukrainian, Bulgarian.
  "ειδοποίηση_προώθησης_σύσκεψης αίτηση_εργασίας αποδοχή_εργασίας απόρριψη_εργασίας ολοκλήρωση_εργασίας ενημέρωση_εργασίας уведомление_о_пересылке_собрания уведомление_о_пересылке_приглашения_на_собрание задание_принято задача_принята задание_отклонено задача_отклонена задание_выполнено задача_выполнена задача_завершена обновление_задачи запрос_задачи запрос_на_задачу",
  "сповіщення_про_пересилання_наради повідомлення_про_пересилання_наради запит_на_завдання завдання_прийнято завдання_відхилено завдання_виконано завдання_завершено оновлення_завдання уведомление_за_препращане_на_събрание заявка_за_задача задачата_е_приета приета_задача задачата_е_отказана отказана_задача завършена_задача",
  // Hebrew, Arabic, Chinese, Japanese, Korean, Thai, Hindi.
  "הודעה_על_העברת_פגישה הודעת_העברת_פגישה בקשת_משימה משימה_התקבלה משימה_נדחתה משימה_הושלמה إعلام_بإعادة_توجيه_الاجتماع إعلام_إعادة_توجيه_الاجتماع إشعار_إعادة_توجيه_الاجتماع طلب_مهمة تم_قبول_المهمة تم_رفض_المهمة تم_إكمال_المهمة",
  "会议转发通知 會議轉寄通知 任务要求 任务请求 任务已接受 接受任务 任务已拒绝 拒绝任务 任务已完成 完成任务 任务更新 工作要求 工作已接受 工作已拒絕 工作已完成 工作更新 会議の転送通知 会議転送の通知 会議転送通知 仕事の依頼 仕事の承諾 仕事の辞退 仕事の完了 仕事の更新 タスクの依頼 タスクの承諾 タスクの辞退 タスクの完了 タスクの更新 모임_전달_알림 회의_전달_알림 작업_요청 작업_수락 작업_수락됨 작업_거절 작업_거절됨 작업_완료 작업_완료됨 작업_업데이트 การแจ้งเตือนการส่งต่อการประชุม การร้องของาน ยอมรับงานแล้ว ปฏิเสธงานแล้ว งานเสร็จสมบูรณ์ मीटिंग_अग्रेषण_सूचना कार्य_अनुरोध कार्य_स्वीकृत कार्य_अस्वीकृत",
];

/** Pairs of a letter and the Latin letter that it looks like. */
const LIKE_LATIN = "аaвbгrеeѕsіiјjкkмmнhоoрpсcтtуyхxһhԁdԛqԝwѡwғfϝfαaβbεeηnιiκkμuνvοoρpτtυuχxωwɑaɡgıiʀrꭱrꮃw";
const LIKENESS = new Map(
  Array.from(LIKE_LATIN.matchAll(/(.)(.)/gu), ([, one = "", other = ""]) => [one, other]),
);

/** Made by the first subject that needs them: folding thousands of words would be a thirtieth of a start. */
let known: Set<string> | undefined;

/** How many labels may precede a mark: "[EXT] Desk: Re: …". */
const MAX_LABELS = 6;
const MAX_LABEL_CHARS = 60;
const MAX_SUBJECT_CHARS = 600;
/** Colons and similar characters, and closing brackets. */
const LABEL_END = /[:;\u02d0\u02f8\u0589\u05c3\u16ec\u1803\u1809\u205a\u2236\ua789|\])}>*】」』〉》〕]/u;
/** "Re[2]", "RE(3)", "Re^4", "AW 5". */
const COUNTER = /[\s.([{^*-]*\d{0,4}$/;
const NO_WORD = /^[^\p{L}\p{N}]+/u;
/** Unix programs mark a forward at the end of the subject. */
const MARK_AT_END = /[([]\s?fwd\s?[)\]]\s?$/;

/**
 * Returns whether a subject begins with what mail programs, in any language, put there for a reply, a forward, or a
 * mail that they write by themselves.
 */
export function hasReplyMark(subject: string): boolean {
  let rest = plain(stripHiddenCharacters(subject).text.slice(0, MAX_SUBJECT_CHARS));
  if (MARK_AT_END.test(rest)) return true;
  for (let labels = 0; labels < MAX_LABELS; labels += 1) {
    rest = rest.replace(NO_WORD, "");
    const end = rest.slice(0, MAX_LABEL_CHARS).search(LABEL_END);
    if (end <= 0) return false;
    if (isMark(rest.slice(0, end))) return true;
    rest = rest.slice(end + 1);
  }
  return false;
}

function isMark(label: string): boolean {
  known ??= new Set(
    [...MARKS, ...PROGRAMS, ...OUTLOOK]
      .flatMap((line) => line.split(" "))
      .map((mark) => plain(mark.replaceAll("_", " "))),
  );
  return known.has(label.trim()) || known.has(label.replace(COUNTER, "").trim());
}

/** Returns a text in lower case without accents, with letters that look Latin as Latin ones. */
function plain(text: string): string {
  return normalForm("NFKD", normalForm("NFKD", text).toLowerCase())
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[^\0-~]/gu, (char) => LIKENESS.get(char) ?? char);
}
