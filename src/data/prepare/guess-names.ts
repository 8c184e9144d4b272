// Guesses the user, item, time, action and rating columns by name. Case, spaces and punctuation are ignored: 'User ID', 'userId'
// and 'user_id' are the same name.

export type GuessedRole = 'user' | 'item' | 'time' | 'action' | 'rating';

/** Names in tiers of decreasing clarity: a later tier is used only if no column matches an earlier one. */
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

/** The normalised name. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** The column of that role; undefined if none or several match. */
export function guessColumn(role: GuessedRole, columns: readonly string[]): string | undefined {
  for (const names of NAMES[role]) {
    const known = new Set(names.split(' '));
    const fits = columns.filter(name => known.has(plain(name)));
    if (fits.length > 0) return fits.length === 1 ? fits[0] : undefined;
  }
  return undefined;
}
