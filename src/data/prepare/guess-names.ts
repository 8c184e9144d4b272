// Which column is the user, the item, the time, the action or the rating, by its name. Case, blanks and punctuation do not
// count: 'User ID', 'userId' and 'user_id' are one name.

export type GuessedRole = 'user' | 'item' | 'time' | 'action' | 'rating';

/** Names by how clear they are: a later list is looked at when no column has a name of an earlier one. */
const NAMES: Record<GuessedRole, readonly string[]> = {
  user: [
    'user userid uid username userkey',
    'customer customerid visitor visitorid reviewer reviewerid member memberid client clientid account accountid buyer buyerid shopper shopperid listener listenerid viewer viewerid player playerid reader readerid person personid profileid author authorid',
    'session sessionid sessid cookie cookieid device deviceid',
  ],
  item: [
    'item itemid iid itemkey',
    'product productid sku skuid stockcode asin parentasin video videoid movie movieid track trackid song songid book bookid isbn article articleid news newsid content contentid game gameid app appid business businessid venue venueid poi poiid listing listingid offer offerid photo photoid recipe recipeid course courseid job jobid show showid anime animeid',
  ],
  time: [
    'timestamp time ts times timems timeus timens timestampms timestamps unixtime unixtimestamp unixreviewtime epoch epochms',
    'datetime eventtime eventtimestamp createdat clicktime viewtime purchasetime ordertime reviewtime requesttime visittime',
    'date eventdate createddate invoicedate orderdate purchasedate reviewdate transactiondate day',
  ],
  action: [
    'action actiontype event eventtype behavior behaviour behaviortype behaviourtype interaction interactiontype',
  ],
  rating: ['rating overall score stars'],
};

/** The name without what people vary. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** The one column of that role; undefined when none or several fit. */
export function guessColumn(role: GuessedRole, columns: readonly string[]): string | undefined {
  for (const names of NAMES[role]) {
    const known = new Set(names.split(' '));
    const fits = columns.filter(name => known.has(plain(name)));
    if (fits.length > 0) return fits.length === 1 ? fits[0] : undefined;
  }
  return undefined;
}
