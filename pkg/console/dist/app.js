document.getElementById('app').textContent = 'The console is being built.';
