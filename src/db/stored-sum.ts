/** What one row of `written_texts` takes, with its indexes. */
export const WRITTEN_TEXT_BYTES = 300;

/** SQL that computes from scratch the sum that triggers maintain in a row of `account_storage`. */
export const STORED_SUM = `
    coalesce((select sum(coalesce(octet_length(m.instruction), 0) + coalesce(octet_length(m.command), 0)
        + coalesce(octet_length(m.result), 0) + coalesce(octet_length(m.steps), 0)
        + case when m.metadata = '{}' then 0 else octet_length(m.metadata) end)
      from messages m where m.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(c.content)) from messages m join message_contents c on c.message_id = m.id
      where m.user_id = account_storage.user_id), 0)
    + coalesce((select sum(a.size) from messages m join attachments a on a.message_id = m.id
      where m.user_id = account_storage.user_id and a.purged_at is null), 0)
    + coalesce((select sum(r.size) from raw_mails r where r.purged_at is null
      and r.id in (select m.raw_mail_id from messages m where m.user_id = account_storage.user_id)), 0)
    + coalesce((select sum(octet_length(o.raw)) from outgoing_mails o where o.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(x.body)) from contexts x where x.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(v.body)) from context_versions v where v.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(y.asked) + octet_length(y.result) + octet_length(y.steps)
      + coalesce(octet_length(y.expected), 0) + coalesce(octet_length(y.differs), 0)) from replays y
      where y.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(s.expected)) from starred_messages s
      where s.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(t.asked)) from test_runs t where t.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(e.body)) from events e where e.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(p.arguments) + coalesce(octet_length(p.shown), 0)
      + coalesce(octet_length(p.changes), 0) + coalesce(octet_length(p.outcome), 0)) from approvals p
      where p.user_id = account_storage.user_id), 0)
    + ${WRITTEN_TEXT_BYTES} * (select count(*) from written_texts w where w.user_id = account_storage.user_id)`;
