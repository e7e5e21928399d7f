// The page that begins a session. The server answers with a cookie, which scripts cannot read, and with a key, which this
// origin alone can read: cookies reach every port of a machine, what a page stores does not. Each request of the console
// sends the key in the header below; without both it is nobody's.
const header = 'X-Platform-Console';
const stored = 'platform.console.key';
const pending = 'platform.console.state';

// What can go wrong at an identity provider. The address names one of these, so that it cannot show a text of its own.
const errors = {
  other: 'This login was not begun here, or too long ago. Try again.',
  provider: 'The identity provider did not accept the login.',
  refused: 'The identity provider knows you, but this server does not accept you. Ask its operator.',
  full: 'The server has too many sessions. Try again later.',
};

const $ = (id) => document.getElementById(id);

// next is the view to go to: one of the console, or its first.
function next() {
  try {
    const to = new URL(new URLSearchParams(location.search).get('next') ?? '', location.href);
    if (to.origin === location.origin && to.pathname.startsWith('/console/') && to.pathname !== '/console/login') return to.pathname + to.search + to.hash;
  } catch {
    // not an address
  }
  return '/console/';
}

function say(text, bad) {
  $('status').textContent = text;
  $('status').className = bad ? 'bad' : '';
}

function enter(key) {
  localStorage.setItem(stored, key);
  localStorage.removeItem('platform.console.namespace'); // another one's, perhaps
  location.replace(next());
}

// ask sends a request about the session. Errors are texts for people.
async function ask(method, path, headers) {
  let answer;
  try {
    answer = await fetch(path, { method, headers: { [header]: localStorage.getItem(stored) ?? 'new', ...headers }, cache: 'no-store' });
  } catch {
    throw new Error('The server does not answer. Try again.');
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error?.message ?? `The server answered ${answer.status}.`);
  return body;
}

async function begin(credential) {
  const { key } = await ask('POST', '/console/session', { Authorization: credential });
  enter(key);
}

function form(ways) {
  $('form').hidden = !ways.token;
  $('provider').hidden = !ways.provider;
  $('help').hidden = false;
  if (!ways.token) say('This console is opened by a link: run platform console again to get a new one.', true);
  else $('token').focus();
}

$('form').addEventListener('submit', async (e) => {
  e.preventDefault();
  const button = $('form').querySelector('button');
  const token = $('token').value.trim();
  $('token').value = '';
  button.disabled = true;
  say('Signing in …');
  try {
    await begin(`Bearer ${token}`);
  } catch (error) {
    say(error.message, true);
    $('token').focus();
  } finally {
    button.disabled = false;
  }
});

$('provider').addEventListener('click', async () => {
  try {
    const { location: to, state } = await ask('POST', '/console/provider', { 'X-Platform-Next': encodeURI(next()) });
    sessionStorage.setItem(pending, state);
    location.assign(to);
  } catch (error) {
    say(error.message, true);
  }
});

// The fragment carries what a link gives, once: it is neither sent to a server nor kept in the history.
const given = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, '', location.pathname + location.search);
try {
  const state = sessionStorage.getItem(pending);
  sessionStorage.removeItem(pending);
  if (given.has('key') && state && state === given.get('state')) { // an answer to the login that this tab began
    enter(given.get('key'));
  } else if (given.has('once')) {
    say('Opening the console …');
    await begin(`Once ${given.get('once')}`);
  } else {
    form(await ask('GET', '/console/ways'));
    if (given.has('error') || given.has('key')) say(errors[given.get('error')] ?? errors.other, true);
  }
} catch (error) {
  say(error.message, true);
  form(await ask('GET', '/console/ways').catch(() => ({ token: true })));
  say(error.message, true);
}
